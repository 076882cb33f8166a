# install → configure and build an outside project → run it alone and as two ranks.
function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    string(JOIN " " command ${ARGN})
    message(FATAL_ERROR "failed (${status}): ${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${WORK_DIR})
step(${CMAKE_COMMAND} --install ${BUILD_DIR} --prefix ${WORK_DIR}/prefix)
# Every C++ example of the pages is compiled against the installation.
step(${PROJECT_DIR}/../doc_examples.py ${SOURCE_DIR} ${WORK_DIR}/docs)
step(${CMAKE_COMMAND} -G Ninja -S ${PROJECT_DIR} -B ${WORK_DIR}/build
     -DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix -DCMAKE_CXX_COMPILER=${COMPILER}
     "-DCMAKE_CXX_FLAGS=${FLAGS}" -DDOC_EXAMPLES=${WORK_DIR}/docs)
step(${CMAKE_COMMAND} --build ${WORK_DIR}/build)

# expect(PROGRAM RANKS COMMAND…): the command runs the consumer, which finds so many ranks.
function(expect program ranks)
  step(${ARGN} ${WORK_DIR}/build/${program} ${ranks})
  if(NOT output MATCHES "${ranks} ranks, sum [0-9]+, right")
    message(FATAL_ERROR "${program} with ${ranks} ranks said: ${output}")
  endif()
endfunction()

set(run ${WORK_DIR}/prefix/bin/kolo run -np 2)
expect(consumer 1)
expect(consumer 2 ${run})
expect(consumer 2 ${run} --transport tcp)
if(EXISTS ${BUILD_DIR}/lib/libkolo_train.a)
  expect(torch_consumer 1)
  expect(torch_consumer 2 ${run})
endif()

# The examples of the search guide.
step(${WORK_DIR}/build/search_consumer)
if(NOT output MATCHES "60 trials, [0-9]+ stopped, best found")
  message(FATAL_ERROR "search_consumer said: ${output}")
endif()

# A program makes jobs, the installed launcher runs them, and the program sees what became of them.
set(jobs ${WORK_DIR}/build/jobs_consumer ${WORK_DIR}/jobs)
step(${jobs} make)
step(${CMAKE_COMMAND} -E env KOLO_DB=${WORK_DIR}/jobs
     ${WORK_DIR}/prefix/bin/kolo launcher --idle-seconds 0.2)
step(${jobs} look)
if(NOT output MATCHES "2 jobs, 2 finished")
  message(FATAL_ERROR "jobs_consumer said: ${output}")
endif()

# Headers of the modules are not part of the promise.
file(GLOB_RECURSE headers RELATIVE ${WORK_DIR}/prefix/include ${WORK_DIR}/prefix/include/*)
foreach(header ${headers})
  if(NOT header MATCHES "^kolo/")
    message(FATAL_ERROR "installed a header outside include/kolo: ${header}")
  endif()
endforeach()
