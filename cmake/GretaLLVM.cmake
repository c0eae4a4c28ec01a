# Finds LLVM, MLIR and LLD 22 and defines greta_library() and greta_tool() for everything that links them.
# The version is checked by hand: MLIRConfig.cmake accepts exact matches only.
find_package(MLIR REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
find_package(LLD REQUIRED CONFIG HINTS /usr/lib/llvm-22/lib/cmake/lld)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "LLVM ${LLVM_PACKAGE_VERSION} found; GRETA needs LLVM/MLIR 22 (scripts/setup installs it)")
endif()
list(APPEND CMAKE_MODULE_PATH ${MLIR_CMAKE_DIR} ${LLVM_CMAKE_DIR})
include(TableGen)
include(AddLLVM)
include(AddMLIR)

# Everything of the compiler is one include world and one set of flags; LLVM's headers count as system headers.
add_library(greta_llvm INTERFACE)
target_include_directories(greta_llvm INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/dialects
                           ${CMAKE_BINARY_DIR}/dialects ${CMAKE_BINARY_DIR}/include)
target_include_directories(greta_llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_options(greta_llvm INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-exceptions -fno-rtti>)
separate_arguments(greta_llvm_definitions NATIVE_COMMAND "${LLVM_DEFINITIONS}")
target_compile_definitions(greta_llvm INTERFACE ${greta_llvm_definitions})
# The shared libraries: a tool links in a second and starts in 27 ms. A tool with the property GRETA_STATIC_LLVM has what
# it needs of them inside, for machines without LLVM and for starts in 11 ms. lld's LTO, which nothing here calls, names
# Polly, which is no part of Debian's archives.
file(GLOB greta_llvm_archives ${LLVM_LIBRARY_DIRS}/libMLIR*.a ${LLVM_LIBRARY_DIRS}/libLLVM*.a)
set(greta_wants_archives $<BOOL:$<TARGET_PROPERTY:GRETA_STATIC_LLVM>>)
target_link_libraries(greta_llvm INTERFACE "$<IF:${greta_wants_archives},${greta_llvm_archives},MLIR;LLVM>")
target_link_options(greta_llvm INTERFACE
                    "$<${greta_wants_archives}:LINKER:--gc-sections,--strip-all,--defsym=_Z18getPollyPluginInfov=0>")

# Four fifths of a compiler source's compile time is MLIR's headers: they are compiled once, for all libraries whose flags agree.
file(WRITE ${CMAKE_BINARY_DIR}/greta_pch.cpp "")
add_library(greta_pch STATIC ${CMAKE_BINARY_DIR}/greta_pch.cpp)
target_link_libraries(greta_pch PUBLIC greta_llvm)
target_precompile_headers(greta_pch PRIVATE
  <mlir/Conversion/LLVMCommon/Pattern.h> <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h>
  <mlir/Dialect/LLVMIR/LLVMDialect.h> <mlir/Dialect/LLVMIR/ROCDLDialect.h> <mlir/Dialect/Linalg/IR/Linalg.h>
  <mlir/Dialect/Math/IR/Math.h> <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/SPIRV/IR/SPIRVOps.h> <mlir/Dialect/Tensor/IR/Tensor.h>
  <mlir/Dialect/Vector/IR/VectorOps.h> <mlir/IR/ImplicitLocOpBuilder.h> <mlir/IR/Matchers.h> <mlir/IR/PatternMatch.h>
  <mlir/Pass/PassManager.h> <llvm/ADT/MapVector.h> <llvm/ADT/SetVector.h> <llvm/ADT/StringSwitch.h> <llvm/ADT/TypeSwitch.h>)
# Clang writes times into precompiled headers, which ccache would take for changes, and forgets there where libstdc++ switches its own warnings
# off: without the macro libstdc++ marks nothing as deprecated.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(greta_llvm INTERFACE "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp -Xclang -fno-deprecated-macro>")
endif()

# greta_library(NAME sources... [DEPENDS tablegen targets...] [LINK libraries...] [OWN_FLAGS]): a static library of the compiler.
# OWN_FLAGS: its compile options differ from the other libraries', so it takes no precompiled headers.
function(greta_library name)
  cmake_parse_arguments(ARG "OWN_FLAGS" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_link_libraries(${name} PUBLIC greta_llvm ${ARG_LINK})
  if(NOT ARG_OWN_FLAGS)
    target_precompile_headers(${name} REUSE_FROM greta_pch)
  endif()
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# greta_tablegen(TARGET file.td OUTPUT flags... [OUTPUT flags...] as pairs "out.inc|-gen-x -gen-y")
function(greta_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  foreach(pair ${ARGN})
    string(REPLACE "|" ";" pair "${pair}")
    list(GET pair 0 out)
    list(GET pair 1 flags)
    separate_arguments(flags NATIVE_COMMAND "${flags}")
    mlir_tablegen(${out} ${flags} -I${CMAKE_SOURCE_DIR}/dialects -I${CMAKE_SOURCE_DIR}/include -I${MLIR_INCLUDE_DIRS})
  endforeach()
  add_public_tablegen_target(${target})
endfunction()
