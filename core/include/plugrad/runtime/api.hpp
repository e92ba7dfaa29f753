// The first include of every header of the core.
#pragma once
#if __cplusplus < 202002L
#error "plugrad needs C++20: compile with -std=c++20"
#endif
#include <version>
#if defined(_GLIBCXX_USE_CXX11_ABI) && !_GLIBCXX_USE_CXX11_ABI
#error "plugrad has the C++11 ABI of libstdc++: compile without -D_GLIBCXX_USE_CXX11_ABI=0"
#endif

#define PLUGRAD_API __attribute__((visibility("default")))
