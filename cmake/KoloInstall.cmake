# cmake --install, and find_package(kolo) afterwards.
