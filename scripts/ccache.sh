# Sourced by scripts that compile: uses ccache if it is installed, with its default folder, so that the objects outlive a
# clone. Paths below the clone are hashed relative to it, so another clone finds the same objects.
if command -v ccache >/dev/null; then
  export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CCACHE_NOHASHDIR=1
  # Precompiled headers, and headers that are as new as the object, are safe: no source uses __TIME__.
  export CCACHE_SLOPPINESS=${CCACHE_SLOPPINESS:-pch_defines,time_macros,include_file_mtime,include_file_ctime}
  # By default ccache also finds objects whose preprocessed text is equal. A precompiled header of other comments is then
  # found too, but gcc compares the text of headers: it would read those with #pragma once again, and refuse them.
  export CCACHE_DEPEND=1
  export CMAKE_C_COMPILER_LAUNCHER=ccache CMAKE_CXX_COMPILER_LAUNCHER=ccache CMAKE_CUDA_COMPILER_LAUNCHER=ccache
fi
# All builds must use the same names of the compilers, or the cache treats them as different compilers. pip sets its own
# names.
export CC=${CC:-cc} CXX=${CXX:-c++}
