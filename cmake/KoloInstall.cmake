# cmake --install, and find_package(kolo) afterwards.
#
# Installed are the program, the public headers, the static libraries of the modules that kolo::kolo
# stands on, and the plug-ins (by plugins/CMakeLists.txt). Rooms that only the program needs stay
# inside it. The component torch (kolo::torch) has targets of its own, so that programs without
# libtorch need not find it.
include(CMakePackageConfigHelpers)

# The modules that `target` links, directly or not, itself included when it is one.
function(kolo_modules_behind target result)
  get_property(modules GLOBAL PROPERTY KOLO_MODULES)
  set(open ${target})
  set(found "")
  while(open)
    list(POP_FRONT open next)
    get_target_property(linked ${next} INTERFACE_LINK_LIBRARIES)
    foreach(library ${linked})
      if(library IN_LIST modules AND NOT library IN_LIST found)
        list(APPEND found ${library})
        list(APPEND open ${library})
      endif()
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kolo)
set(plugin_dir ${CMAKE_INSTALL_LIBDIR}/kolo)
kolo_modules_behind(kolo modules)

install(TARGETS kolo ${modules} EXPORT kolo-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT kolo-targets NAMESPACE kolo:: DESTINATION ${package_dir})
set(KOLO_HAS_TORCH OFF)
if(KOLO_WITH_TORCH)
  set(KOLO_HAS_TORCH ON)
  kolo_modules_behind(kolo_torch torch_modules)
  list(REMOVE_ITEM torch_modules ${modules})
  install(TARGETS kolo_torch ${torch_modules} EXPORT kolo-torch-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT kolo-torch-targets NAMESPACE kolo:: DESTINATION ${package_dir})
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kolo ${PROJECT_BINARY_DIR}/include/kolo
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS kolo_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET kolo_nas_app)
  install(TARGETS kolo_nas_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kolo-config.cmake.in
  ${PROJECT_BINARY_DIR}/kolo-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR plugin_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kolo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kolo-config.cmake
              ${PROJECT_BINARY_DIR}/kolo-config-version.cmake DESTINATION ${package_dir})
