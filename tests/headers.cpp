// Contains only the headers that tests/CMakeLists.txt compiles once for all tests.
int main() {}
