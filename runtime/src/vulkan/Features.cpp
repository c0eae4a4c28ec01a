// Features.cpp: see Features.h.
#include "Features.h"
#include "Process.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

namespace greta::rt::vulkan {
namespace {

// Lists features that the runtime queries and enables if they are there. A
// manifest may name any of them.
#define ROW(Struct, Member)                                                    \
  {#Member, offsetof(FeatureChain, Struct) +                                   \
                offsetof(decltype(FeatureChain::Struct), Member)}
#define CORE(Member)                                                           \
  {#Member, offsetof(FeatureChain, Core) +                                     \
                offsetof(VkPhysicalDeviceFeatures2, features.Member)}
constexpr struct {
  const char *Name;
  size_t Offset;
} featureTable[] = {
    CORE(shaderInt64),
    CORE(shaderInt16),
    CORE(shaderFloat64),
    ROW(V11, storageBuffer16BitAccess),
    ROW(V11, uniformAndStorageBuffer16BitAccess),
    ROW(V11, storagePushConstant16),
    ROW(V12, storageBuffer8BitAccess),
    ROW(V12, uniformAndStorageBuffer8BitAccess),
    ROW(V12, storagePushConstant8),
    ROW(V12, shaderFloat16),
    ROW(V12, shaderInt8),
    ROW(V12, shaderBufferInt64Atomics),
    ROW(V12, shaderSharedInt64Atomics),
    ROW(V12, scalarBlockLayout),
    ROW(V12, uniformBufferStandardLayout),
    ROW(V12, shaderSubgroupExtendedTypes),
    ROW(V12, timelineSemaphore),
    ROW(V12, bufferDeviceAddress),
    ROW(V12, vulkanMemoryModel),
    ROW(V12, vulkanMemoryModelDeviceScope),
    ROW(V13, subgroupSizeControl),
    ROW(V13, computeFullSubgroups),
    ROW(V13, synchronization2),
    ROW(V13, shaderIntegerDotProduct),
    ROW(V13, shaderZeroInitializeWorkgroupMemory),
    ROW(V13, maintenance4),
    ROW(Coop, cooperativeMatrix),
    ROW(BFloat16, shaderBFloat16Type),
    ROW(BFloat16, shaderBFloat16DotProduct),
    ROW(BFloat16, shaderBFloat16CooperativeMatrix),
    ROW(Float8, shaderFloat8),
    ROW(Float8, shaderFloat8CooperativeMatrix),
    ROW(AtomicFloat, shaderBufferFloat32Atomics),
    ROW(AtomicFloat, shaderBufferFloat32AtomicAdd),
    ROW(AtomicFloat, shaderSharedFloat32Atomics),
    ROW(AtomicFloat, shaderSharedFloat32AtomicAdd),
    ROW(WorkgroupLayout, workgroupMemoryExplicitLayout),
    ROW(WorkgroupLayout, workgroupMemoryExplicitLayoutScalarBlockLayout),
    ROW(WorkgroupLayout, workgroupMemoryExplicitLayout8BitAccess),
    ROW(WorkgroupLayout, workgroupMemoryExplicitLayout16BitAccess),
    ROW(Executable, pipelineExecutableInfo),
};
#undef ROW
#undef CORE

// Modules that convert to f16 need this property. A manifest lists it among the
// features, and it has nothing to enable.
constexpr const char *roundingProperty = "shaderRoundingModeRTEFloat16";

// The runtime itself needs these features.
constexpr const char *needed[] = {"bufferDeviceAddress", "timelineSemaphore",
                                  "synchronization2"};

VkBool32 &flag(FeatureChain &Chain, size_t Offset) {
  return *reinterpret_cast<VkBool32 *>(reinterpret_cast<char *>(&Chain) +
                                       Offset);
}

// Maps VkComponentTypeKHR to the manifest's names.
std::string componentName(int32_t Type) {
  switch (Type) {
  case 0:
    return "f16";
  case 1:
    return "f32";
  case 2:
    return "f64";
  case 3:
    return "i8";
  case 4:
    return "i16";
  case 5:
    return "i32";
  case 6:
    return "i64";
  case 7:
    return "u8";
  case 8:
    return "u16";
  case 9:
    return "u32";
  case 10:
    return "u64";
  case 1000141000:
    return "bf16";
  case 1000491002:
    return "f8e4m3fn";
  case 1000491003:
    return "f8e5m2";
  }
  return "type" + std::to_string(Type);
}

// These drivers are known to be wrong. Reading the cooperative-matrix property
// list of AMD's own drivers has crashed programs.
constexpr struct {
  VkDriverId Driver;
  const char *Why;
} coopmatDeny[] = {
    {VK_DRIVER_ID_AMD_PROPRIETARY,
     "AMD's proprietary driver crashes on the property query"},
    {VK_DRIVER_ID_AMD_OPEN_SOURCE, "AMDVLK crashes on the property query"},
};

// GRETA_VULKAN_DENY=name[,name:coopmat]: devices whose name contains `name` are
// not used, or used without cooperative matrices.
bool deniedByUser(const std::string &Device, bool Coopmat) {
  const char *Value = environment("GRETA_VULKAN_DENY");
  std::string List = Value ? Value : "";
  const std::string Suffix = ":coopmat";
  for (size_t Begin = 0; Begin < List.size();) {
    size_t End = std::min(List.find(',', Begin), List.size());
    std::string Name = List.substr(Begin, End - Begin);
    Begin = End + 1;
    bool ForCoopmat =
        Name.size() > Suffix.size() &&
        Name.compare(Name.size() - Suffix.size(), Suffix.size(), Suffix) == 0;
    if (ForCoopmat)
      Name.resize(Name.size() - Suffix.size());
    if (ForCoopmat == Coopmat && !Name.empty() &&
        Device.find(Name) != std::string::npos)
      return true;
  }
  return false;
}

// Returns compute units or multiprocessors, if a vendor's extension has them.
uint32_t computeUnits(const Instance &I, VkPhysicalDevice Handle,
                      const std::vector<VkExtensionProperties> &Extensions) {
  auto Has = [&](const char *Name) {
    return std::any_of(
        Extensions.begin(), Extensions.end(),
        [&](const auto &E) { return !strcmp(E.extensionName, Name); });
  };
  VkPhysicalDeviceShaderCoreProperties2AMD Cores{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV Multiprocessors{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceProperties2 Props{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  if (Has(VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME))
    Props.pNext = &Cores;
  else if (Has(VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
    Props.pNext = &Multiprocessors;
  I.GetPhysicalDeviceProperties2(Handle, &Props);
  return Cores.activeComputeUnitCount + Multiprocessors.shaderSMCount;
}

PhysicalDevice query(const Instance &I, VkPhysicalDevice Handle) {
  PhysicalDevice P;
  P.Handle = Handle;
  I.GetPhysicalDeviceProperties(Handle, &P.Props);
  if (P.Props.apiVersion < VK_API_VERSION_1_3) {
    P.Refused = "Vulkan " +
                std::to_string(VK_API_VERSION_MAJOR(P.Props.apiVersion)) + "." +
                std::to_string(VK_API_VERSION_MINOR(P.Props.apiVersion)) +
                ", 1.3 is needed";
    return P;
  }
  if (deniedByUser(P.Props.deviceName, /*Coopmat=*/false)) {
    P.Refused = "denied by GRETA_VULKAN_DENY";
    return P;
  }
  VkPhysicalDeviceProperties2 Props{
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  P.V11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_PROPERTIES;
  P.V12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES;
  P.V13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_PROPERTIES;
  Props.pNext = &P.V11;
  P.V11.pNext = &P.V12;
  P.V12.pNext = &P.V13;
  I.GetPhysicalDeviceProperties2(Handle, &Props);

  P.HostImport.sType =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_MEMORY_HOST_PROPERTIES_EXT;
  uint32_t Count = 0;
  I.EnumerateDeviceExtensionProperties(Handle, nullptr, &Count, nullptr);
  std::vector<VkExtensionProperties> All(Count);
  I.EnumerateDeviceExtensionProperties(Handle, nullptr, &Count, All.data());
  for (const char *Used :
       {"VK_KHR_cooperative_matrix", "VK_KHR_shader_bfloat16",
        "VK_EXT_shader_float8", "VK_EXT_shader_atomic_float",
        "VK_KHR_workgroup_memory_explicit_layout",
        "VK_KHR_pipeline_executable_properties", "VK_KHR_external_memory_fd",
        "VK_KHR_external_semaphore_fd", "VK_EXT_external_memory_dma_buf",
        "VK_EXT_external_memory_host", "VK_EXT_memory_budget"})
    for (const VkExtensionProperties &E : All)
      if (!strcmp(E.extensionName, Used))
        P.Extensions.insert(Used);

  P.ComputeUnits = computeUnits(I, Handle, All);

  if (P.Extensions.count("VK_EXT_external_memory_host")) {
    Props.pNext = &P.HostImport;
    I.GetPhysicalDeviceProperties2(Handle, &Props);
  }

  P.CoopmatDenied = deniedByUser(P.Props.deviceName, /*Coopmat=*/true);
  for (const auto &Row : coopmatDeny)
    P.CoopmatDenied |= P.V12.driverID == Row.Driver;
  if (P.CoopmatDenied || !I.GetCooperativeMatrixProperties)
    P.Extensions.erase("VK_KHR_cooperative_matrix");

  FeatureChain Chain;
  Chain.link(P.Extensions);
  I.GetPhysicalDeviceFeatures2(Handle, &Chain.Core);
  for (const auto &Row : featureTable)
    if (flag(Chain, Row.Offset))
      P.Features.insert(Row.Name);
  if (P.V12.shaderRoundingModeRTEFloat16)
    P.Features.insert(roundingProperty);
  for (const char *Name : needed)
    if (!P.Features.count(Name))
      P.Refused = std::string("it lacks the feature ") + Name;

  if (P.Features.count("cooperativeMatrix")) {
    Count = 0;
    I.GetCooperativeMatrixProperties(Handle, &Count, nullptr);
    std::vector<CoopMatrixProperty> Shapes(
        Count, {sTypeCoopProperty, nullptr, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    if (I.GetCooperativeMatrixProperties(Handle, &Count, Shapes.data()) ==
        VK_SUCCESS)
      for (uint32_t S = 0; S < Count; ++S)
        if (const CoopMatrixProperty &C = Shapes[S];
            C.scope == scopeSubgroup && !C.saturatingAccumulation)
          P.Coopmat.push_back({C.M, C.N, C.K, componentName(C.AType),
                               componentName(C.BType), componentName(C.CType),
                               componentName(C.ResultType)});
  }
  return P;
}

constexpr int maxRank = 5;
int rank(const PhysicalDevice &P) {
  if (!P.Refused.empty())
    return maxRank;
  switch (P.Props.deviceType) {
  case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
    return 0;
  case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
    return 1;
  case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
    return 2;
  case VK_PHYSICAL_DEVICE_TYPE_CPU:
    return 3;
  default:
    return 4;
  }
}

} // namespace

void FeatureChain::link(const std::set<std::string> &Extensions) {
  memset(this, 0, sizeof(*this));
  Core.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
  V11.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES;
  V12.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES;
  V13.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES;
  Coop.sType = sTypeCoopFeatures;
  BFloat16.sType = sTypeBFloat16Features;
  Float8.sType = sTypeFloat8Features;
  AtomicFloat.sType =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_ATOMIC_FLOAT_FEATURES_EXT;
  WorkgroupLayout.sType =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_WORKGROUP_MEMORY_EXPLICIT_LAYOUT_FEATURES_KHR;
  Executable.sType =
      VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR;
  void **Next = &Core.pNext;
  auto Add = [&](auto &Struct, const char *Extension) {
    if (Extension && !Extensions.count(Extension))
      return;
    *Next = &Struct;
    Next = &Struct.pNext;
  };
  Add(V11, nullptr);
  Add(V12, nullptr);
  Add(V13, nullptr);
  Add(Coop, "VK_KHR_cooperative_matrix");
  Add(BFloat16, "VK_KHR_shader_bfloat16");
  Add(Float8, "VK_EXT_shader_float8");
  Add(AtomicFloat, "VK_EXT_shader_atomic_float");
  Add(WorkgroupLayout, "VK_KHR_workgroup_memory_explicit_layout");
  Add(Executable, "VK_KHR_pipeline_executable_properties");
}

bool knownFeature(const std::string &Name) {
  if (Name == roundingProperty)
    return true;
  for (const auto &Row : featureTable)
    if (Name == Row.Name)
      return true;
  return false;
}

void enableFeatures(const PhysicalDevice &P, FeatureChain &Chain) {
  Chain.link(P.Extensions);
  for (const auto &Row : featureTable)
    if (P.Features.count(Row.Name))
      flag(Chain, Row.Offset) = VK_TRUE;
}

std::vector<PhysicalDevice> physicalDevices(const Instance &I) {
  std::vector<PhysicalDevice> All;
  for (VkPhysicalDevice Handle : I.physicalDevices())
    All.push_back(query(I, Handle));
  std::vector<PhysicalDevice> Sorted;
  for (int Rank = 0; Rank <= maxRank; ++Rank)
    for (const PhysicalDevice &P : All)
      if (rank(P) == Rank)
        Sorted.push_back(P);
  return Sorted;
}

std::vector<std::string> subgroupOps(VkSubgroupFeatureFlags Flags) {
  // The names are in the order of the flag bits.
  static const char *const Names[] = {"basic",      "vote",
                                      "arithmetic", "ballot",
                                      "shuffle",    "shuffle_relative",
                                      "clustered",  "quad"};
  std::vector<std::string> Result;
  for (size_t Bit = 0; Bit < std::size(Names); ++Bit)
    if (Flags & (1u << Bit))
      Result.push_back(Names[Bit]);
  return Result;
}

void PhysicalDevice::restrict(const std::set<std::string> &EnabledFeatures,
                              const std::set<std::string> &EnabledExtensions) {
  auto Keep = [](std::set<std::string> &Mine,
                 const std::set<std::string> &Enabled) {
    for (auto It = Mine.begin(); It != Mine.end();)
      It = Enabled.count(*It) ? std::next(It) : Mine.erase(It);
  };
  bool Rounds = Features.count(roundingProperty);
  Keep(Features, EnabledFeatures);
  if (Rounds) // this has nothing to enable
    Features.insert(roundingProperty);
  Keep(Extensions, EnabledExtensions);
  for (const char *Name : needed)
    if (!Features.count(Name))
      fail(GRETA_ERROR_UNSUPPORTED, Props.deviceName,
           ": the application's device was created without ", Name);
  if (!Features.count("cooperativeMatrix"))
    Coopmat.clear();
}

std::string PhysicalDevice::uuid() const {
  return hex(V11.deviceUUID, VK_UUID_SIZE);
}

std::string PhysicalDevice::cacheKey() const {
  // Mesa's device UUID is the place on the bus, and Mesa 26's pipeline caches
  // have one UUID on all chips. The ids tell another card in the same place.
  char Card[32];
  std::snprintf(Card, sizeof(Card), "%04x%04x", Props.vendorID, Props.deviceID);
  return uuid() + "-" + hex(V11.driverUUID, VK_UUID_SIZE) + "-" +
         std::to_string(Props.driverVersion) + "-" + Card + "-" +
         hex(Props.pipelineCacheUUID, 8);
}

std::string PhysicalDevice::family() const {
  switch (Props.vendorID) {
  case 0x10de:
    return "vulkan:nvidia";
  case 0x1002: // RDNA 4's matrix units are the first with 8-bit floats
    return Extensions.count("VK_EXT_shader_float8") ? "vulkan:rdna4"
                                                    : "vulkan:rdna3";
  case 0x8086:
    return "vulkan:intel";
  case VK_VENDOR_ID_MESA:
    return "vulkan:lavapipe";
  default:
    return "";
  }
}

void PhysicalDevice::describe(nlohmann::json &Out) const {
  Out["name"] = Props.deviceName;
  Out["backend"] = "vulkan";
  if (!Refused.empty())
    return;
  Out["uuid"] = uuid();
  Out["family"] = family();
  Out["driver"] = std::string(V12.driverName) + " " + V12.driverInfo;
  Out["subgroup_size"] = {{"default", V11.subgroupSize},
                          {"min", V13.minSubgroupSize},
                          {"max", V13.maxSubgroupSize}};
  Out["subgroup_ops"] = subgroupOps(V11.subgroupSupportedOperations);
  Out["shared_bytes"] = Props.limits.maxComputeSharedMemorySize;
  if (ComputeUnits)
    Out["compute_units"] = ComputeUnits;
  Out["features"] = Features;
  Out["coopmat"] = nlohmann::json::array();
  for (const CoopShape &C : Coopmat)
    Out["coopmat"].push_back({{"m", C.M},
                              {"n", C.N},
                              {"k", C.K},
                              {"a", C.A},
                              {"b", C.B},
                              {"c", C.C},
                              {"result", C.Result}});
  if (CoopmatDenied)
    Out["coopmat_denied"] = true;
}

} // namespace greta::rt::vulkan
