# altiplano_add_plugin(<kind>/<name> SOURCES a.cpp b.cpp [LIBRARIES lib ...])
# One folder, one shared object <build>/lib/altiplano/plugins/<kind>-<name>.so that exports one symbol.
function(altiplano_add_plugin plugin_name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  string(REPLACE "/" "-" file_name ${plugin_name})
  string(REPLACE "-" "_" target ${file_name})
  set(target plugin_${target})
  add_library(${target} MODULE ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE altiplano altiplano_compile ${arg_LIBRARIES})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${file_name}
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/altiplano/plugins)
  target_compile_definitions(${target} PRIVATE ALTIPLANO_PLUGIN_NAME="${plugin_name}")
  target_link_options(${target} PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/plugin.map)
  if(NOT ALTIPLANO_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  set_target_properties(${target} PROPERTIES LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/plugin.map)
  set_property(GLOBAL APPEND PROPERTY ALTIPLANO_PLUGIN_TARGETS ${target})
  install(TARGETS ${target} LIBRARY DESTINATION lib/altiplano/plugins)
endfunction()
