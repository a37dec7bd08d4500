# Run as a script: writes OUTPUT from INPUT with the commit of SOURCE in it. -dirty: tracked files differ from the commit.
execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty
  OUTPUT_VARIABLE ALTIPLANO_GIT_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  set(ALTIPLANO_GIT_COMMIT unknown)
endif()
configure_file(${INPUT} ${OUTPUT} @ONLY)
