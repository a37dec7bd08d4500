# Compiler settings every target shares, as one interface library.
add_library(altiplano_compile INTERFACE)
include(AltiplanoFingerprint)
target_include_directories(altiplano_compile INTERFACE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
# -ffp-contract=off: the same source line gives the same bits whatever the optimizer fuses (design invariant 2).
target_compile_options(altiplano_compile INTERFACE -Wall -Wextra -Wpedantic -ffp-contract=off)
# g++ 12 at -O3 warns of std::string's own moves (gcc.gnu.org bug 105329 and its kin); the checked build keeps these warnings.
target_compile_options(altiplano_compile INTERFACE
  $<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-restrict>)
if(ALTIPLANO_WERROR)
  target_compile_options(altiplano_compile INTERFACE -Werror)
endif()
if(ALTIPLANO_UNITY)
  # A member whose type stands in a source's unnamed namespace is a mistake in a header only; g++ takes joined sources for one.
  target_compile_options(altiplano_compile INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# These checks of UBSan double the time to compile what is mostly texts and containers, and AddressSanitizer sees most of what they would:
# with ALTIPLANO_QUICK_CHECKS, targets whose sources do not lay out raw memory go without (their property ALTIPLANO_WITHOUT_CHECKS).
set(altiplano_costly_checks null,object-size,pointer-overflow,alignment)
set(without_checks $<$<BOOL:${ALTIPLANO_QUICK_CHECKS}>:$<TARGET_PROPERTY:ALTIPLANO_WITHOUT_CHECKS>>)
if(ALTIPLANO_SANITIZE)
  # What g++ says of uninitialised values is left to the checked build: instrumented code makes g++ take values of std::optional for unset.
  target_compile_options(altiplano_compile INTERFACE -fsanitize=${ALTIPLANO_SANITIZE} -fno-omit-frame-pointer
    $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized> $<$<BOOL:${without_checks}>:-fno-sanitize=${without_checks}>)
  target_link_options(altiplano_compile INTERFACE -fsanitize=${ALTIPLANO_SANITIZE})
endif()
