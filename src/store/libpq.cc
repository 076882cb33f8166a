#include "store/libpq.h"

#include <dlfcn.h>

#include "base/errors.h"

namespace kolo::store {

SystemLibrary::SystemLibrary(const char* file, const char* package)
    : file_(file), handle_(::dlopen(file, RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr)
    throw_error(ErrorCode::not_found, "cannot load {} (Debian's package {}): {}", file, package,
                ::dlerror());
}

SystemLibrary::Symbol SystemLibrary::operator[](const char* name) const {
  void* const address = ::dlsym(handle_, name);
  if (address == nullptr) throw_error(ErrorCode::not_found, "{} has no {}", file_, name);
  return Symbol(address);
}

const Libpq& libpq() {
  static const Libpq functions;
  return functions;
}

}  // namespace kolo::store
