// What XLA hands to a function that a compiled program calls: its stable C interface for foreign
// functions, version 0.x, of which these are the parts that kolo uses. The names of the fields are
// kolo's; order and types are the interface. Structures begin with their size, so that later
// versions can add fields behind those that are here.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kolo::python::xla {

struct Error;   // XLA's
struct Future;  // XLA's

struct Extension {
  std::size_t size;
  std::int32_t type;
  Extension* next;
};
inline constexpr std::int32_t kMetadataExtension = 1;

struct Version {
  std::size_t size;
  Extension* extensions;
  std::int32_t major, minor;
};
/// The oldest version that has all of the fields below.
inline constexpr std::int32_t kMajor = 0, kMinor = 1;

struct Metadata {
  std::size_t size;
  Version version;
  std::uint32_t traits;
};
struct MetadataExtension {
  Extension base;
  Metadata* metadata;
};

struct ErrorOrder {
  std::size_t size = sizeof(ErrorOrder);
  Extension* extensions = nullptr;
  const char* message = nullptr;
  std::int32_t code = 0;
};
/// Those of absl::Status.
inline constexpr std::int32_t kInvalidArgument = 3, kFailedPrecondition = 9, kUnavailable = 14;

struct FutureOrder {
  std::size_t size = sizeof(FutureOrder);
  Extension* extensions = nullptr;
  Future* future = nullptr;
};
struct FutureFailure {
  std::size_t size = sizeof(FutureFailure);
  Extension* extensions = nullptr;
  Future* future = nullptr;
  Error* error = nullptr;  // XLA takes it
};

/// XLA's functions.
struct Api {
  std::size_t size;
  Extension* extensions;
  Version version;
  const void* internal;
  Error* (*create_error)(ErrorOrder*);
  void* others[12];  // of no use here
  Error* (*create_future)(FutureOrder*);
  Error* (*set_available)(FutureOrder*);
  Error* (*set_failure)(FutureFailure*);
};

struct Array {
  std::size_t size;
  Extension* extensions;
  std::int32_t type;
  void* data;
  std::int64_t rank;
  std::int64_t* dimensions;
};

struct Arrays {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  std::int32_t* types;
  void** values;  // each an Array
};

struct Text {
  const char* data;
  std::size_t size;
};
struct Scalar {
  std::int32_t type;
  void* value;
};
struct Attributes {
  std::size_t size;
  Extension* extensions;
  std::int64_t count;
  std::int32_t* types;
  Text** names;
  void** values;  // a Text or a Scalar
};

enum class Stage : std::int32_t { instantiate = 0, prepare = 1, initialize = 2, execute = 3 };

struct Frame {
  std::size_t size;
  Extension* extensions;
  const Api* api;
  void* context;
  Stage stage;
  Arrays arguments;
  Arrays results;
  Attributes attributes;
  Future* future;  // to be set by a function that goes on after its return
};

using Function = Error* (*)(Frame*);

}  // namespace kolo::python::xla
