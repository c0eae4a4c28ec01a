//===- LldTest.cpp - linking in process -----------------------------------===//

#include "greta/Link/Lld.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/TargetParser/Host.h"
#include "gtest/gtest.h"
#include <dlfcn.h>

using namespace llvm;

static std::string compile(StringRef ir, StringRef tripleName, StringRef cpu) {
  InitializeAllTargetInfos();
  InitializeAllTargets();
  InitializeAllTargetMCs();
  InitializeAllAsmPrinters();
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseAssemblyString(ir, diagnostic, context);
  EXPECT_TRUE(module) << diagnostic.getMessage().str();
  Triple triple(tripleName);
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  EXPECT_TRUE(target) << error;
  std::unique_ptr<TargetMachine> machine(
      target->createTargetMachine(triple, cpu, "", {}, Reloc::PIC_));
  module->setTargetTriple(triple);
  module->setDataLayout(machine->createDataLayout());
  SmallString<0> object;
  raw_svector_ostream os(object);
  legacy::PassManager passes;
  EXPECT_FALSE(machine->addPassesToEmitFile(passes, os, nullptr,
                                            CodeGenFileType::ObjectFile));
  passes.run(*module);
  return std::string(object);
}

TEST(Lld, AHostObjectRunsAndNamesItsLibraries) {
  std::string object = compile("declare float @cosf(float)\n"
                               "define float @f(float %x) {\n"
                               "  %y = call float @cosf(float %x)\n"
                               "  ret float %y\n"
                               "}\n",
                               sys::getProcessTriple(), "");
  SmallString<0> linked;
  ASSERT_FALSE(errorToBool(
      greta::linkShared({StringRef(object)}, greta::LinkKind::Host, linked)));
  EXPECT_NE(linked.find("libm.so.6"), StringRef::npos);
  EXPECT_NE(linked.find("libc.so.6"), StringRef::npos);
  SmallString<128> path;
  int fd;
  ASSERT_FALSE(sys::fs::createTemporaryFile("greta-lld-test", "so", fd, path));
  raw_fd_ostream(fd, /*shouldClose=*/true) << linked;
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto *f = reinterpret_cast<float (*)(float)>(dlsym(library, "f"));
  ASSERT_TRUE(f);
  EXPECT_EQ(f(0.0f), 1.0f);
  dlclose(library);
  sys::fs::remove(path);
}

TEST(Lld, AnAmdgpuObjectBecomesACodeObject) {
  for (StringRef chip : {"gfx942", "gfx1100"}) {
    std::string object = compile("define amdgpu_kernel void @k() { ret void }",
                                 "amdgcn-amd-amdhsa", chip);
    SmallString<0> linked;
    ASSERT_FALSE(errorToBool(greta::linkShared(
        {StringRef(object)}, greta::LinkKind::Amdgpu, linked)));
    auto elf = object::ObjectFile::createELFObjectFile(
        MemoryBufferRef(linked, "linked"));
    ASSERT_TRUE(bool(elf));
    auto *file = cast<object::ELFObjectFileBase>(elf->get());
    EXPECT_EQ(file->getEType(), ELF::ET_DYN);
    EXPECT_EQ(file->tryGetCPUName(), chip);
  }
}

TEST(Lld, FailuresAreErrorsAndLeaveNothing) {
  // A temporary directory of our own, so that what stays there is ours.
  SmallString<128> directory;
  ASSERT_FALSE(sys::fs::createUniqueDirectory("greta-lld-test", directory));
  setenv("TMPDIR", directory.c_str(), /*overwrite=*/1);
  SmallString<0> linked;
  std::string message = toString(greta::linkShared(
      {StringRef("no object")}, greta::LinkKind::Amdgpu, linked));
  EXPECT_NE(message.find("linking failed"), std::string::npos) << message;
  std::string object = compile("declare void @missing()\n"
                               "define amdgpu_kernel void @k() {\n"
                               "  call void @missing()\n"
                               "  ret void\n"
                               "}\n",
                               "amdgcn-amd-amdhsa", "gfx942");
  message = toString(
      greta::linkShared({StringRef(object)}, greta::LinkKind::Amdgpu, linked));
  EXPECT_NE(message.find("missing"), std::string::npos) << message;
  // And it works again afterwards.
  object = compile("define amdgpu_kernel void @k() { ret void }",
                   "amdgcn-amd-amdhsa", "gfx942");
  EXPECT_FALSE(errorToBool(
      greta::linkShared({StringRef(object)}, greta::LinkKind::Amdgpu, linked)));
  unsetenv("TMPDIR");
  EXPECT_FALSE(sys::fs::remove(directory)) << "files are left over";
}
