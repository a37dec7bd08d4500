# altiplano_add_plugin(<kind>/<name> SOURCES a.cpp b.cpp [LIBRARIES lib ...])
# One folder, one shared object <kind>-<name>.so that exports one symbol; the target is plugin_<kind>_<name>. Its sources get the macros
# ALTIPLANO_PLUGIN_NAME and ALTIPLANO_PLUGIN_VERSION, the version of the project() it stands in.
# In Altiplano's own tree it lies in <build>/lib/altiplano/plugins. Elsewhere, after find_package(Altiplano), it lies in the build folder
# and gets a test, conformance_<kind>_<name>: `altiplano plugins check`. Installed, it goes to lib/altiplano/plugins.
set(ALTIPLANO_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)

function(altiplano_add_plugin plugin_name)
  cmake_parse_arguments(arg "" "" "SOURCES;LIBRARIES" ${ARGN})
  if(NOT plugin_name MATCHES "^(planner|schedule|comm|device|op|model|scheduler)/[a-z0-9_-]+$")
    message(FATAL_ERROR "altiplano_add_plugin(${plugin_name}): a name is <kind>/<name>, the kind one of planner, schedule, comm, device, "
      "op, model, scheduler, the name of lower-case letters, digits, '_' and '-'")
  endif()
  string(REPLACE "/" "-" file_name ${plugin_name})
  string(REPLACE "-" "_" target ${file_name})
  set(target plugin_${target})
  add_library(${target} MODULE ${arg_SOURCES})
  set_target_properties(${target} PROPERTIES
    PREFIX "" OUTPUT_NAME ${file_name}
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON
    INSTALL_RPATH "$ORIGIN/../.."
    LINK_DEPENDS ${ALTIPLANO_PLUGIN_MAP})
  target_compile_definitions(${target} PRIVATE
    ALTIPLANO_PLUGIN_NAME="${plugin_name}" ALTIPLANO_PLUGIN_VERSION="${PROJECT_VERSION}")
  # The same source line gives the same bits whatever the optimizer would fuse.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  target_link_options(${target} PRIVATE LINKER:--version-script=${ALTIPLANO_PLUGIN_MAP})
  if(NOT ALTIPLANO_SANITIZE)
    target_link_options(${target} PRIVATE LINKER:-z,defs)
  endif()
  install(TARGETS ${target} LIBRARY DESTINATION lib/altiplano/plugins)
  if(TARGET Altiplano::altiplano)
    target_link_libraries(${target} PRIVATE Altiplano::altiplano ${arg_LIBRARIES})
    add_test(NAME conformance_${target} COMMAND Altiplano::program plugins check $<TARGET_FILE:${target}>)
  else()
    target_link_libraries(${target} PRIVATE altiplano altiplano_compile ${arg_LIBRARIES})
    if(plugin_name MATCHES "^(planner|schedule|model|scheduler)/")
      set_target_properties(${target} PROPERTIES ALTIPLANO_WITHOUT_CHECKS "${altiplano_costly_checks}")
    endif()
    set_target_properties(${target} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/altiplano/plugins)
    set_property(GLOBAL APPEND PROPERTY ALTIPLANO_PLUGIN_TARGETS ${target})
  endif()
endfunction()
