# The Debian package: `cmake --preset package && cmake --build --preset package --target package`.
# The policy, /etc/gpushim.conf, is no part of it: it is the administrator's, and stays when the package goes.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "The gpushim maintainers <maintainers@gpushim.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION
"A library that is preloaded into unmodified CUDA programs and makes each of them live within a policy file: which GPUs it sees and in what order, how much GPU memory it may hold, and which acts across GPUs and processes it may do.
.
Installing the package changes nothing: an administrator turns it on for every program of the machine by gpushim-site(8), and a user for one program by LD_PRELOAD.")
set(CPACK_DEBIAN_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
# By hand: tests/preload/budget.sh holds the object to these symbols.
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.17)")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64)
else()
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE amd64)
endif()
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${PROJECT_SOURCE_DIR}/packaging/postinst ${PROJECT_SOURCE_DIR}/packaging/prerm)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION TRUE)
include(CPack)
