# plugrad_batches(TARGET [SIZE]): compiles several of the target's sources as one unit, so that they parse the same headers
# and instantiate the same templates once: a third of the time. Names in the anonymous namespaces of one folder must differ.
# Without batches each source compiles by itself; the builds under sanitizers check that it can.
option(PLUGRAD_BATCHES "compile several sources as one unit" ON)
function(plugrad_batches target)
  set(size 20)
  if(ARGC GREATER 1)
    set(size ${ARGV1})
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${PLUGRAD_BATCHES} UNITY_BUILD_BATCH_SIZE ${size})
  target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:GNU>>:-Wno-subobject-linkage>)
endfunction()
