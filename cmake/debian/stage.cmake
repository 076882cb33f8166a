# Runs inside cpack, when the files of all packages are in place: adds what Debian wants of every
# package, and computes dependencies. Plug-ins are loaded when they are chosen, so the libraries that
# they alone need are recommended and not required.
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()

function(install_debian_texts folder)
  file(MAKE_DIRECTORY ${folder})
  file(COPY_FILE ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/copyright ${folder}/copyright)
  string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
  file(WRITE ${folder}/changelog.Debian
    "${CPACK_PACKAGE_NAME} (${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE}) unstable; urgency=medium\n\n"
    "  * Version ${CPACK_PACKAGE_VERSION}; CHANGELOG.md in the sources tells what is new.\n\n"
    " -- ${CPACK_PACKAGE_CONTACT}  ${date}\n")
  execute_process(COMMAND gzip -9nf ${folder}/changelog.Debian COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# shared_library_packages(RESULT FILE…): the packages with the libraries that these files link.
function(shared_library_packages result)
  set(work ${CPACK_TEMPORARY_DIRECTORY}/shlibdeps)
  file(WRITE ${work}/debian/control "Source: kolo\n\nPackage: kolo\nArchitecture: any\n")
  execute_process(COMMAND dpkg-shlibdeps --ignore-missing-info -O ${ARGN} WORKING_DIRECTORY ${work}
                  OUTPUT_VARIABLE output ERROR_VARIABLE warnings RESULT_VARIABLE status)
  file(REMOVE_RECURSE ${work})
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "dpkg-shlibdeps failed: ${warnings}")
  endif()
  string(REGEX REPLACE "^shlibs:Depends=|\n$" "" output "${output}")
  string(REPLACE ", " ";" packages "${output}")
  set(${result} "${packages}" PARENT_SCOPE)
endfunction()

macro(append_packages variable)
  string(JOIN ", " ${variable} ${${variable}} ${ARGN})
endmacro()

# Each package has a summary of its own; cpack would put one for all in front.
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "")

foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} key)
  set(stage ${CPACK_TEMPORARY_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX})
  install_debian_texts(${stage}/share/doc/${CPACK_DEBIAN_${key}_PACKAGE_NAME})
  file(GLOB programs ${stage}/bin/* ${stage}/lib/python3/dist-packages/kolo/*.so)
  file(GLOB plugins ${stage}/lib/kolo/*.so ${stage}/lib/*/kolo/*.so)
  file(GLOB archives ${stage}/lib/*.a ${stage}/lib/*/*.a)
  if(archives)
    execute_process(COMMAND strip --strip-debug --remove-section=.comment ${archives}
                    COMMAND_ERROR_IS_FATAL ANY)
  endif()
  set(needed "")
  if(programs)
    shared_library_packages(needed ${programs})
    append_packages(CPACK_DEBIAN_${key}_PACKAGE_DEPENDS ${needed})
  endif()
  if(plugins)
    shared_library_packages(wanted ${plugins})
    # What is required anyhow need not be recommended, whatever the version.
    list(TRANSFORM needed REPLACE " .*" "" OUTPUT_VARIABLE required)
    foreach(name ${required})
      string(REGEX REPLACE "[+.]" "\\\\\\0" name "${name}")
      list(FILTER wanted EXCLUDE REGEX "^${name}( |$)")
    endforeach()
    append_packages(CPACK_DEBIAN_${key}_PACKAGE_RECOMMENDS ${wanted})
  endif()
endforeach()
