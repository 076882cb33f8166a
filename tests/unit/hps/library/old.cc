// A library of another kolo: only the first members of its answer may be looked at.
extern "C" const void* kolo_hps_library() {
  struct Old {
    int sdk;
    const char* version;
  };
  static const Old old{0, "0.0.9"};
  return &old;
}
