# The Python package kolo: the compiled module kolo._core and, beside it in the build tree, links to
# the Python files, so that PYTHONPATH=<build>/python is the package as it will be installed.
#
# Debian's own interpreter, unless another one is asked for (scikit-build-core does).
if(NOT Python_EXECUTABLE AND EXISTS /usr/bin/python3)
  set(Python_EXECUTABLE /usr/bin/python3)
endif()
find_package(Python 3.9 COMPONENTS Interpreter Development.Module QUIET)
find_package(pybind11 2.10 CONFIG QUIET)
if(NOT Python_FOUND OR NOT pybind11_FOUND)
  if(KOLO_BUILD_PYTHON STREQUAL "AUTO")
    message(STATUS "pybind11 or Python's headers not found (pybind11-dev, python3-dev): "
                   "the Python package is not built")
    return()
  endif()
  message(FATAL_ERROR "KOLO_BUILD_PYTHON needs pybind11 and Python's headers: scripts/setup python")
endif()

set(python_sources ${PROJECT_SOURCE_DIR}/python/src)
set(package_dir ${PROJECT_BINARY_DIR}/python/kolo)
pybind11_add_module(kolo_python MODULE NO_EXTRAS
  ${python_sources}/blocking.cc
  ${python_sources}/custom_algorithms.cc
  ${python_sources}/elastic.cc
  ${python_sources}/errors.cc
  ${python_sources}/gradient_buckets.cc
  ${python_sources}/keeper.cc
  ${python_sources}/module.cc
  ${python_sources}/operations.cc
  ${python_sources}/runtime.cc
  ${python_sources}/search.cc
  ${python_sources}/study.cc
  ${python_sources}/study_callbacks.cc
  ${python_sources}/study_results.cc
  ${python_sources}/tensorflow.cc
  ${python_sources}/tensorflow_interface.cc
  ${python_sources}/trainables.cc
  ${python_sources}/values.cc
  ${python_sources}/xla.cc)
set_target_properties(kolo_python PROPERTIES
  OUTPUT_NAME _core
  LIBRARY_OUTPUT_DIRECTORY ${package_dir}
  UNITY_BUILD OFF)
target_include_directories(kolo_python PRIVATE ${python_sources} ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(kolo_python PRIVATE kolo_hps kolo_tune kolo_engine kolo_comm kolo_exec kolo_base
                                          fmt::fmt kolo_warnings)
# Other modules of the interpreter may carry copies of the same libraries.
target_link_options(kolo_python PRIVATE -Wl,--exclude-libs,ALL)
if(KOLO_SANITIZE MATCHES undefined)
  # Python ends threads that wait at its own end. pybind11 catches that by a reference which is null and throws it on.
  target_compile_options(kolo_python PRIVATE -fno-sanitize=null)
endif()

file(GLOB files RELATIVE ${PROJECT_SOURCE_DIR}/python/kolo CONFIGURE_DEPENDS
     ${PROJECT_SOURCE_DIR}/python/kolo/*)
list(REMOVE_ITEM files __pycache__)
file(MAKE_DIRECTORY ${package_dir})
foreach(file ${files})
  file(CREATE_LINK ${PROJECT_SOURCE_DIR}/python/kolo/${file} ${package_dir}/${file} SYMBOLIC)
endforeach()

if(SKBUILD)
  install(TARGETS kolo_python LIBRARY DESTINATION kolo COMPONENT python)
  install(TARGETS kolo_app RUNTIME DESTINATION kolo/bin COMPONENT python)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/lib/kolo/ DESTINATION kolo/lib/kolo COMPONENT python
          FILES_MATCHING PATTERN "*.so")
  return()
endif()

# Where Debian keeps packages of its interpreter. Only the package python3-kolo has these files: others use a wheel.
set(debian_packages lib/python3/dist-packages)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/python/kolo.egg-info @ONLY CONTENT
"Metadata-Version: 2.1
Name: @PROJECT_NAME@
Version: @PROJECT_VERSION@
Summary: @PROJECT_DESCRIPTION@
Requires-Dist: cloudpickle
")
install(TARGETS kolo_python LIBRARY DESTINATION ${debian_packages}/kolo COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/kolo/ DESTINATION ${debian_packages}/kolo COMPONENT python
        EXCLUDE_FROM_ALL PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/python/kolo.egg-info DESTINATION ${debian_packages}
        RENAME kolo-${PROJECT_VERSION}.egg-info COMPONENT python EXCLUDE_FROM_ALL)
