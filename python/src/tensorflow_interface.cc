#include "tensorflow_interface.h"

#include <dlfcn.h>

namespace kolo::python::tensorflow {

Functions tf;

void load_functions(const std::string& library) {
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr)
    throw_error(ErrorCode::unsupported, "TensorFlow's library {} is not loaded", library);
  const auto load = [&](auto& function, const char* name) {
    void* found = ::dlsym(handle, name);
    if (found == nullptr)
      throw_error(ErrorCode::unsupported, "this TensorFlow has no function {}", name);
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  load(tf.new_status, "TF_NewStatus");
  load(tf.delete_status, "TF_DeleteStatus");
  load(tf.set_status, "TF_SetStatus");
  load(tf.code, "TF_GetCode");
  load(tf.message, "TF_Message");
  load(tf.new_op, "TF_NewOpDefinitionBuilder");
  load(tf.add_attribute, "TF_OpDefinitionBuilderAddAttr");
  load(tf.add_input, "TF_OpDefinitionBuilderAddInput");
  load(tf.add_output, "TF_OpDefinitionBuilderAddOutput");
  load(tf.set_stateful, "TF_OpDefinitionBuilderSetIsStateful");
  load(tf.set_shapes, "TF_OpDefinitionBuilderSetShapeInferenceFunction");
  load(tf.register_op, "TF_RegisterOpDefinition");
  load(tf.shape_count, "TF_ShapeInferenceContextNumInputs");
  load(tf.new_shape, "TF_NewShapeHandle");
  load(tf.delete_shape, "TF_DeleteShapeHandle");
  load(tf.input_shape, "TF_ShapeInferenceContextGetInput");
  load(tf.set_output_shape, "TF_ShapeInferenceContextSetOutput");
  load(tf.set_unknown_shapes, "TF_ShapeInferenceContextSetUnknownShape");
  load(tf.new_kernel, "TF_NewKernelBuilder");
  load(tf.register_kernel, "TF_RegisterKernelBuilder");
  load(tf.attribute_size, "TF_OpKernelConstruction_GetAttrSize");
  load(tf.attribute_text, "TF_OpKernelConstruction_GetAttrString");
  load(tf.attribute_number, "TF_OpKernelConstruction_GetAttrInt64");
  load(tf.construction_failed, "TF_OpKernelConstruction_Failure");
  load(tf.input_count, "TF_NumInputs");
  load(tf.input, "TF_GetInput");
  load(tf.allocate_output, "TF_AllocateOutput");
  load(tf.failed, "TF_OpKernelContext_Failure");
  load(tf.type, "TF_TensorType");
  load(tf.rank, "TF_NumDims");
  load(tf.dimension, "TF_Dim");
  load(tf.bytes, "TF_TensorByteSize");
  load(tf.data, "TF_TensorData");
  load(tf.delete_tensor, "TF_DeleteTensor");
}

}  // namespace kolo::python::tensorflow
