// TensorFlow's C interface for ops and kernels, with kolo's names for what is used of it. Its
// functions are looked up in the library that the interpreter has loaded: nothing is linked and
// nothing is compiled for a version of TensorFlow.
#pragma once

#include <cstdint>
#include <string>
#include <type_traits>

#include "base/errors.h"

namespace kolo::python::tensorflow {

struct Status;  // each is TensorFlow's
struct Tensor;
struct Construction;
struct KernelContext;
struct ShapeContext;
struct Shape;
struct OpBuilder;
struct KernelBuilder;

using CreateKernel = void* (*)(Construction*);
using Compute = void (*)(void*, KernelContext*);
using DeleteKernel = void (*)(void*);
using InferShapes = void (*)(ShapeContext*, Status*);

/// TensorFlow's numbers of errors.
enum Code : int { kUnknown = 2, kInvalidArgument = 3, kFailedPrecondition = 9 };

/// The functions that are used, with kolo's names for them.
struct Functions {
  Status* (*new_status)();
  void (*delete_status)(Status*);
  void (*set_status)(Status*, int code, const char* message);
  int (*code)(const Status*);
  const char* (*message)(const Status*);

  OpBuilder* (*new_op)(const char* name);
  void (*add_attribute)(OpBuilder*, const char* spec);
  void (*add_input)(OpBuilder*, const char* spec);
  void (*add_output)(OpBuilder*, const char* spec);
  void (*set_stateful)(OpBuilder*, bool);
  void (*set_shapes)(OpBuilder*, InferShapes);
  void (*register_op)(OpBuilder*, Status*);
  std::int64_t (*shape_count)(ShapeContext*);
  Shape* (*new_shape)();
  void (*delete_shape)(Shape*);
  void (*input_shape)(ShapeContext*, int, Shape*, Status*);
  void (*set_output_shape)(ShapeContext*, int, Shape*, Status*);
  void (*set_unknown_shapes)(ShapeContext*, Status*);

  KernelBuilder* (*new_kernel)(const char* op, const char* device, CreateKernel, Compute,
                               DeleteKernel);
  void (*register_kernel)(const char* name, KernelBuilder*, Status*);
  void (*attribute_size)(Construction*, const char* name, std::int32_t* count, std::int32_t* bytes,
                         Status*);
  void (*attribute_text)(Construction*, const char* name, char* value, std::size_t, Status*);
  void (*attribute_number)(Construction*, const char* name, std::int64_t* value, Status*);
  void (*construction_failed)(Construction*, Status*);

  int (*input_count)(KernelContext*);
  void (*input)(KernelContext*, int, Tensor**, Status*);
  Tensor* (*allocate_output)(KernelContext*, int, int type, const std::int64_t* dimensions,
                             int rank, std::size_t bytes, Status*);
  void (*failed)(KernelContext*, Status*);

  int (*type)(const Tensor*);
  int (*rank)(const Tensor*);
  std::int64_t (*dimension)(const Tensor*, int);
  std::size_t (*bytes)(const Tensor*);
  void* (*data)(const Tensor*);
  void (*delete_tensor)(Tensor*);
};
extern Functions tf;

/// Throws unsupported when the library is not loaded or lacks a function.
void load_functions(const std::string& library);

/// A status that throws when something went wrong.
class Checked {
 public:
  Checked() : status_(tf.new_status()) {}
  ~Checked() { tf.delete_status(status_); }
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  template <class Function, class... Arguments>
  auto call(Function function, Arguments... arguments) {
    if constexpr (std::is_void_v<std::invoke_result_t<Function, Arguments..., Status*>>) {
      function(arguments..., status_);
      check();
    } else {
      auto result = function(arguments..., status_);
      check();
      return result;
    }
  }
  /// Ranks that disagree are found when the operation is under way.
  Status* with(const Error& error, bool is_under_way = false) {
    const int code = error.code() == ErrorCode::peer_lost ? kUnknown
                     : error.code() == ErrorCode::invalid_argument && !is_under_way
                         ? kInvalidArgument
                         : kFailedPrecondition;
    tf.set_status(status_, code, error.message().c_str());
    return status_;
  }

 private:
  void check() {
    if (tf.code(status_) != 0) throw_error(ErrorCode::invalid_argument, "{}", tf.message(status_));
  }
  Status* status_;
};

}  // namespace kolo::python::tensorflow
