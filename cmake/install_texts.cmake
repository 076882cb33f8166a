# Runs at installation: the program writes its manual pages and completions, which are then installed.
#   program, written (a folder for what it writes), mandir, datadir
file(REMOVE_RECURSE ${written})
set(zsh ${written}/zsh/site-functions)
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND EXISTS /etc/debian_version)
  set(zsh ${written}/zsh/vendor-completions)  # Debian's zsh looks there
endif()
set(bash ${written}/bash-completion/completions)
set(fish ${written}/fish/vendor_completions.d)
file(MAKE_DIRECTORY ${written}/man1 ${bash} ${fish} ${zsh})
execute_process(COMMAND ${program} manual --man ${written}/man1 COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${program} completion bash OUTPUT_FILE ${bash}/kolo
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${program} completion zsh OUTPUT_FILE ${zsh}/_kolo
                COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${program} completion fish OUTPUT_FILE ${fish}/kolo.fish
                COMMAND_ERROR_IS_FATAL ANY)
file(GLOB pages ${written}/man1/*.1)
find_program(gzip gzip)
if(gzip)
  execute_process(COMMAND ${gzip} -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
endif()

function(destination result folder)
  cmake_path(ABSOLUTE_PATH folder BASE_DIRECTORY ${CMAKE_INSTALL_PREFIX})
  set(${result} ${folder} PARENT_SCOPE)
endfunction()
destination(man ${mandir})
destination(data ${datadir})
file(INSTALL DESTINATION ${man} TYPE DIRECTORY FILES ${written}/man1)
file(INSTALL DESTINATION ${data} TYPE DIRECTORY
     FILES ${written}/bash-completion ${written}/fish ${written}/zsh)
