// Session.cpp: a loaded function with its tensors on a device, and when two
// results agree.
#include "Options.h"

#include <cstdio>
#include <cstring>
#include <stdexcept>

namespace greta_run {
namespace {

void checkInputs(const greta::Function &F, const std::vector<Input> &Inputs) {
  std::vector<greta::TensorInfo> Args = F.arguments();
  if (Inputs.size() != Args.size())
    throw std::runtime_error("the function takes " +
                             std::to_string(Args.size()) + " inputs, " +
                             std::to_string(Inputs.size()) + " given");
  for (size_t I = 0; I < Args.size(); ++I) {
    if (Inputs[I].IsScalar != Args[I].isScalar)
      throw std::runtime_error(
          "input " + std::to_string(I) + " (" + Inputs[I].Text + ") is a " +
          (Inputs[I].IsScalar ? "scalar" : "tensor") + ", argument '" +
          Args[I].name + "' is a " +
          (Args[I].isScalar ? "scalar: write --input=" + Args[I].dtype + ":V"
                            : "tensor"));
    if (Inputs[I].DType != Args[I].dtype) {
      std::string Hint = Inputs[I].DType == "u16" || Inputs[I].DType == "u8"
                             ? "; write --input=" + Args[I].dtype +
                                   ":FILE for data saved as unsigned integers"
                             : "";
      throw std::runtime_error("input " + std::to_string(I) + " (" +
                               Inputs[I].Text + ") is " + Inputs[I].DType +
                               ", argument '" + Args[I].name + "' is " +
                               Args[I].dtype + Hint);
    }
  }
}

greta::Tensor scalarOf(const Input &In) {
  greta::Tensor Scalar;
  Scalar.isScalar = true;
  std::vector<uint8_t> Bytes = In.Make();
  memcpy(Scalar.value.data(), Bytes.data(), Bytes.size());
  return Scalar;
}

// docs/internals/numerics.md: the error of one rounding, per row. Two
// computations may each be off by it; the maximum norm allows a function that
// rounds twice.
double tolerance(const std::string &DType) {
  return DType == "f32" || DType == "f64" ? 1e-5
         : DType == "f16"                 ? 1e-3
         : DType == "bf16"                ? 8e-3
                                          : 6.25e-2;
}

} // namespace

std::string limitsOf(const HostTensor &Want, const Options &O) {
  char Text[128];
  if (O.Elementwise)
    snprintf(Text, sizeof(Text), "%g + %g * |want| for every element", O.Atol,
             O.Rtol);
  else if (Want.DType[0] == 'i')
    return "equal";
  else
    snprintf(Text, sizeof(Text), "worst row %.3g (Euclidean) %.3g (maximum)",
             2 * tolerance(Want.DType), 4 * tolerance(Want.DType));
  return Text;
}

std::string disagreement(const HostTensor &Got, const HostTensor &Want,
                         const Difference &D, const Options &O,
                         const std::vector<std::string> &Through) {
  char Text[512];
  bool Integer = Got.DType[0] == 'i';
  if (O.Elementwise || Integer) {
    if (D.Outside == 0)
      return "";
    snprintf(Text, sizeof(Text),
             "%lld of %lld elements differ by more than %g + %g * |want|; the "
             "first is %lld: got %.9g, want %.9g",
             static_cast<long long>(D.Outside),
             static_cast<long long>(Want.elements()), O.Atol, O.Rtol,
             static_cast<long long>(D.FirstOutside),
             Elements(Got)[D.FirstOutside], Elements(Want)[D.FirstOutside]);
    return Text;
  }
  double Limit = tolerance(Got.DType);
  for (const std::string &DType : Through)
    Limit = std::max(Limit, tolerance(DType));
  if (D.RowEuclidean <= 2 * Limit && D.RowMaximum <= 4 * Limit)
    return "";
  snprintf(Text, sizeof(Text),
           "the worst row is off by %.3g (Euclidean, limit %.3g) and %.3g "
           "(maximum, limit %.3g), relative to the row",
           D.RowEuclidean, 2 * Limit, D.RowMaximum, 4 * Limit);
  return Text;
}

std::string disagreement(const std::vector<HostTensor> &Got,
                         const std::vector<HostTensor> &Want,
                         const std::vector<std::string> &Through) {
  if (Got.size() != Want.size())
    return "there are " + std::to_string(Got.size()) + " results, not " +
           std::to_string(Want.size());
  for (size_t I = 0; I < Got.size(); ++I) {
    std::string Name = "result r" + std::to_string(I);
    if (Got[I].DType != Want[I].DType || Got[I].Shape != Want[I].Shape)
      return Name + " is " + shapeText(Got[I].Shape) + " of " + Got[I].DType +
             ", not " + shapeText(Want[I].Shape) + " of " + Want[I].DType;
    std::string Why = disagreement(Got[I], Want[I],
                                   compare(Got[I], Want[I], 0, 0), {}, Through);
    if (!Why.empty())
      return "wrong " + Name + ": " + Why;
  }
  return "";
}

Session::Session(greta::Runtime &Runtime, const greta::Package &Package,
                 const std::string &Name, const std::string &Variant,
                 const std::vector<Input> &Inputs)
    : Runtime(Runtime), Function(Runtime.load(Package, Name, Variant)),
      Stream(Runtime.stream()) {
  checkInputs(Function, Inputs);
  if (Function.sums()) { // over this rank alone
    greta_comm_id Id = greta::Comm::uniqueId();
    greta_comm_options How{};
    How.id = &Id;
    How.size = 1;
    Function.setComm(Runtime.comm(How));
  }
  for (const Input &In : Inputs)
    Arguments.push_back(In.IsScalar ? scalarOf(In)
                                    : greta::Tensor(nullptr, In.Shape));
  std::vector<greta::TensorInfo> Infos = Function.results();
  std::vector<std::vector<int64_t>> Shapes;
  for (size_t I = 0; I < Infos.size(); ++I) {
    auto [Shape, Bytes] = Function.resultShape(I, Arguments);
    Shapes.push_back(Shape);
    ResultBytes.push_back(Bytes);
    ResultTypes.push_back(Infos[I].dtype);
  }
  for (const Input &In : Inputs) {
    ArgumentBytes.push_back(bytesOf(In.DType, In.Shape));
    ArgumentBuffers.push_back(Runtime.allocate(ArgumentBytes.back()));
  }
  for (size_t Bytes : ResultBytes)
    ResultBuffers.push_back(Runtime.allocate(Bytes));
  for (size_t I = 0; I < Arguments.size(); ++I)
    if (!Arguments[I].isScalar)
      Arguments[I].buffer = &ArgumentBuffers[I];
  for (size_t I = 0; I < Shapes.size(); ++I)
    Results.push_back({&ResultBuffers[I], Shapes[I], 0});
}

void Session::write(const std::vector<std::vector<uint8_t>> &Data) {
  for (size_t I = 0; I < Data.size(); ++I)
    Stream.write(ArgumentBuffers[I], Data[I].data(), Data[I].size());
  // A kernel that leaves a result unwritten shows as NaN, not as an old right
  // answer.
  for (size_t I = 0; I < ResultBuffers.size(); ++I)
    Stream.fill(ResultBuffers[I], ResultBytes[I] / 4 * 4, 0xffffffff);
}

std::vector<HostTensor> Session::read() {
  std::vector<HostTensor> All;
  for (size_t I = 0; I < Results.size(); ++I) {
    HostTensor T{ResultTypes[I], Results[I].shape,
                 std::vector<uint8_t>(ResultBytes[I])};
    Stream.read(ResultBuffers[I], T.Bytes.data(), T.Bytes.size());
    All.push_back(std::move(T));
  }
  return All;
}

} // namespace greta_run
