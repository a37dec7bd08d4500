# framework/api/fingerprint.hpp in the build tree: a hash over every header that crosses the plugin door. Comments and blanks do not
# count, so that explaining a header better does not refuse yesterday's plugins.
set(door_hashes "")
foreach(header ${ALTIPLANO_HEADERS})
  file(READ ${CMAKE_SOURCE_DIR}/${header} text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  string(REGEX REPLACE "[ \t\r\n]+" " " text "${text}")
  string(SHA256 hash "${text}")
  string(APPEND door_hashes "${header} ${hash}\n")
  set_property(DIRECTORY ${CMAKE_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${header})
endforeach()
string(SHA256 ALTIPLANO_API_HASH "${door_hashes}")
string(SUBSTRING ${ALTIPLANO_API_HASH} 0 16 ALTIPLANO_API_HASH)
configure_file(${CMAKE_SOURCE_DIR}/framework/api/fingerprint.hpp.in
  ${CMAKE_BINARY_DIR}/generated/framework/api/fingerprint.hpp @ONLY)
