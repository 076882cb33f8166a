// A program that leaves a daemon behind whose first thread has ended while another one lives: the
// kernel shows such a process as a zombie without an environment.
//
//   first_thread_ends FILE   the number of the daemon goes to this file
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include <initializer_list>

namespace {

void* live_on(void* /*argument*/) {
  for (;;) ::pause();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (::fork() != 0) {
    while (::access(argv[1], F_OK) != 0) ::usleep(1000);
    return 0;
  }
  ::setsid();
  if (::fork() != 0) ::_exit(0);
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) ::close(stream);
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, live_on, nullptr) != 0) return 1;
  FILE* file = ::fopen(argv[1], "w");
  if (file == nullptr) return 1;
  ::fprintf(file, "%d", ::getpid());
  ::fclose(file);
  ::pthread_exit(nullptr);
}
