# The files that plugrad new-plugin writes are part of the program: those of each language's template, and for Rust the
# contract as its source.
set(template_folder ${CMAKE_CURRENT_LIST_DIR}/template)
set(FILES "")
function(plugrad_template language name file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  file(READ ${file} text)
  set(FILES "${FILES}      {\"${language}\", \"${name}\", R\"PLUGRAD(${text})PLUGRAD\"},\n" PARENT_SCOPE)
endfunction()
foreach(path c++/CMakeLists.txt c++/NAME.cpp c++/README.md c++/ci.sh c++/gitignore c++-device/NAME.cpp
        c/CMakeLists.txt c/NAME.c c/README.md c/ci.sh c/gitignore c-device/NAME.c
        rust/Cargo.toml rust/build.rs rust/src/lib.rs rust/README.md rust/ci.sh rust/gitignore
        rust-device/src/lib.rs rust-device/src/queue.rs)
  string(REGEX MATCH "^([^/]+)/(.+)$" parts ${path})
  plugrad_template(${CMAKE_MATCH_1} ${CMAKE_MATCH_2} ${template_folder}/${path})
endforeach()
foreach(language c++ c rust)
  plugrad_template(${language} torch_test.py ${template_folder}/torch_test.py)
endforeach()
plugrad_template(rust src/plugrad_sys.rs ${PROJECT_SOURCE_DIR}/sdk/rust/plugrad-sys/src/lib.rs)
set(PLUGRAD_TEMPLATES ${CMAKE_CURRENT_BINARY_DIR}/templates.cpp)
configure_file(new_plugin/templates.cpp.in ${PLUGRAD_TEMPLATES} @ONLY)
