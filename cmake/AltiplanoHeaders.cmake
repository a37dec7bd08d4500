# The headers a plugin may include, relative to the source tree: installed by AltiplanoInstall and hashed by AltiplanoFingerprint, so that
# a change in any of them refuses plugins that were built before it.
set(altiplano_header_globs)
foreach(folder base options graph graph/ops kernels cluster sharding cost plan program simulate api api/collectives api/engine api/network api/segment)
  list(APPEND altiplano_header_globs ${CMAKE_SOURCE_DIR}/framework/${folder}/*.h ${CMAKE_SOURCE_DIR}/framework/${folder}/*.hpp)
endforeach()
file(GLOB ALTIPLANO_HEADERS CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR} ${altiplano_header_globs})
