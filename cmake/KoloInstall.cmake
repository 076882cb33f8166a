# cmake --install, and find_package(kolo) afterwards.
#
# Components, each a package of its own (KoloPackage.cmake):
#   kolo    the program, the plug-ins (by plugins/CMakeLists.txt), manual pages and completions
#   dev     public headers, and static libraries of the modules that kolo::kolo stands on. Modules
#           that only the program needs stay inside it
#   torch   kolo::torch and kolo-nas. It has targets of its own, so that programs without libtorch
#           need not find it
#   python  the module for Debian's interpreter (python/KoloPython.cmake)
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

install(TARGETS kolo ${modules} EXPORT kolo-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
install(EXPORT kolo-targets NAMESPACE kolo:: DESTINATION ${package_dir} COMPONENT dev)
if(KOLO_WITH_TORCH)
  kolo_modules_behind(kolo_torch torch_modules)
  list(REMOVE_ITEM torch_modules ${modules})
  install(TARGETS kolo_torch ${torch_modules} EXPORT kolo-torch-targets
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT torch)
  install(EXPORT kolo-torch-targets NAMESPACE kolo:: DESTINATION ${package_dir} COMPONENT torch)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kolo ${PROJECT_BINARY_DIR}/include/kolo
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
install(TARGETS kolo_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT kolo)
if(TARGET kolo_nas_app)
  install(TARGETS kolo_nas_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT torch)
endif()

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/kolo-config.cmake.in
  ${PROJECT_BINARY_DIR}/kolo-config.cmake INSTALL_DESTINATION ${package_dir}
  PATH_VARS CMAKE_INSTALL_BINDIR plugin_dir)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kolo-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kolo-config.cmake
              ${PROJECT_BINARY_DIR}/kolo-config-version.cmake
        DESTINATION ${package_dir} COMPONENT dev)

# The program writes its own manual pages and completions.
install(CODE "
  set(program \"$<TARGET_FILE:kolo_app>\")
  set(written \"${PROJECT_BINARY_DIR}/share\")
  set(mandir \"${CMAKE_INSTALL_MANDIR}\")
  set(datadir \"${CMAKE_INSTALL_DATADIR}\")
  include(\"${PROJECT_SOURCE_DIR}/cmake/install_texts.cmake\")" COMPONENT kolo)
