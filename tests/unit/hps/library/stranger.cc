// A library that has nothing to do with kolo.
extern "C" int answer() { return 42; }
