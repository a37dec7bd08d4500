# Every third-party library, found once, named once.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(spdlog REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(HDF5 REQUIRED COMPONENTS C)
pkg_check_modules(XXHASH REQUIRED IMPORTED_TARGET libxxhash)
pkg_check_modules(CBC REQUIRED cbc)
# Debian's dnnl-config.cmake insists on OpenCL headers that a CPU build does not need.
find_library(DNNL_LIBRARY dnnl REQUIRED)
find_path(DNNL_INCLUDE_DIR oneapi/dnnl/dnnl.hpp REQUIRED)
add_library(DNNL::dnnl UNKNOWN IMPORTED)
set_target_properties(DNNL::dnnl PROPERTIES IMPORTED_LOCATION ${DNNL_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES ${DNNL_INCLUDE_DIR})
find_package(ICU REQUIRED COMPONENTS uc)  # Unicode classes of the GPT-2 tokenizer
find_package(OpenMP REQUIRED COMPONENTS CXX)
# Optional: what is missing is left out, and said.
pkg_check_modules(PMIX IMPORTED_TARGET pmix)  # ranks that srun or mpirun starts
find_package(MPI COMPONENTS C)                # plugins/comms/mpi
find_path(UCX_INCLUDE_DIR ucp/api/ucp.h)      # plugins/comms/ucx; Debian's ucx.pc asks for a file that it has not
find_library(UCX_UCP_LIBRARY ucp)
find_library(UCX_UCS_LIBRARY ucs)
if(UCX_INCLUDE_DIR AND UCX_UCP_LIBRARY AND UCX_UCS_LIBRARY)
  set(UCX_FOUND TRUE)
  add_library(UCX::ucp UNKNOWN IMPORTED)
  set_target_properties(UCX::ucp PROPERTIES IMPORTED_LOCATION ${UCX_UCP_LIBRARY} INTERFACE_LINK_LIBRARIES ${UCX_UCS_LIBRARY}
    INTERFACE_INCLUDE_DIRECTORIES ${UCX_INCLUDE_DIR})
endif()
if(NOT PMIX_FOUND)
  message(STATUS "without PMIx (libpmix-dev): ranks cannot be started by srun or mpirun")
endif()
if(NOT MPI_C_FOUND)
  message(STATUS "without MPI (libopenmpi-dev): no comm/mpi")
endif()
if(NOT UCX_FOUND)
  message(STATUS "without UCX (libucx-dev): no comm/ucx")
endif()

add_library(altiplano_hdf5 INTERFACE)
target_include_directories(altiplano_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(altiplano_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
