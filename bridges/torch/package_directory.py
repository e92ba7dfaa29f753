"""Prints the directory of an installed package, or nothing. package_directory.py NAME"""
import importlib.util
import sys

spec = importlib.util.find_spec(sys.argv[1])
print(spec.submodule_search_locations[0] if spec and spec.submodule_search_locations else "")
