# cpack -G DEB, in the build folder: the Debian packages kolo, libkolo-dev, kolo-torch and python3-kolo.
# scripts/package calls it, and makes the relocatable archive.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME kolo)
set(CPACK_PACKAGE_VENDOR "The kolo project")
set(CPACK_PACKAGE_CONTACT "The kolo maintainers <maintainers@kolo.invalid>")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
    OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_COMPONENTS_ALL kolo dev)
set(this_version "(= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")

# What programs and plug-ins link is found by dpkg-shlibdeps when the packages are made.
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian/stage.cmake)

set(CPACK_DEBIAN_KOLO_PACKAGE_NAME kolo)
set(CPACK_COMPONENT_KOLO_DESCRIPTION "${PROJECT_DESCRIPTION}
kolo trains networks on many processes and hosts, searches hyperparameters
and network architectures, and runs the jobs of a search on a cluster.
.
This package has the command, its plug-ins for transports between hosts,
manual pages and completions for shells.")
set(CPACK_DEBIAN_KOLO_PACKAGE_RECOMMENDS openssh-client)
set(CPACK_DEBIAN_KOLO_PACKAGE_SUGGESTS "kolo-torch, libpq5, openmpi-bin, slurm-client")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libkolo-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers and libraries of kolo, for C++ programs
kolo trains networks on many processes and hosts, searches hyperparameters
and network architectures, and runs the jobs of a search on a cluster.
.
This package has what find_package(kolo) in CMake needs. Programs that train
with libtorch need kolo-torch as well.")
# What kolo-config.cmake looks for.
string(JOIN ", " CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "kolo ${this_version}"
  libfmt-dev libspdlog-dev nlohmann-json3-dev libyaml-cpp-dev libsodium-dev libhwloc-dev
  libsqlite3-dev libprotobuf-dev pkg-config)

if(KOLO_WITH_TORCH)
  list(APPEND CPACK_COMPONENTS_ALL torch)
  set(CPACK_DEBIAN_TORCH_PACKAGE_NAME kolo-torch)
  set(CPACK_COMPONENT_TORCH_DESCRIPTION "Training and architecture search of kolo, on libtorch
kolo trains networks on many processes and hosts, searches hyperparameters
and network architectures, and runs the jobs of a search on a cluster.
.
This package has what kolo nas runs, and the library kolo::torch for
data-parallel training in C++.")
  set(CPACK_DEBIAN_TORCH_PACKAGE_DEPENDS "kolo ${this_version}")
  set(CPACK_DEBIAN_TORCH_PACKAGE_RECOMMENDS "libkolo-dev, libtorch-dev, zlib1g-dev")
endif()

if(TARGET kolo_python)
  list(APPEND CPACK_COMPONENTS_ALL python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-kolo)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Data-parallel training and search for Python, on kolo
kolo trains networks on many processes and hosts, searches hyperparameters
and network architectures, and runs the jobs of a search on a cluster.
.
This package has the module kolo for Python 3. It works with PyTorch,
TensorFlow, Keras and JAX, and needs none of them.")
  # The module is compiled for one version of Python.
  math(EXPR next_minor "${Python_VERSION_MINOR} + 1")
  string(JOIN ", " CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "kolo ${this_version}" python3-cloudpickle
    "python3 (>= ${Python_VERSION_MAJOR}.${Python_VERSION_MINOR})" "python3 (<< ${Python_VERSION_MAJOR}.${next_minor})")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-torch, python3-pandas, python3-optuna")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/cmake/debian/python/postinst ${PROJECT_SOURCE_DIR}/cmake/debian/python/prerm)
endif()
include(CPack)
