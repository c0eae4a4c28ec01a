// Run.cpp: one launch with files in and out, expectations and the check against
// the host variant.
#include "Npy.h"
#include "Options.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <unistd.h>

namespace greta_run {
namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string &What) {
  throw std::runtime_error(What);
}

// All files or none: everything is written beside its target first, then
// renamed.
class OutputFiles {
public:
  ~OutputFiles() {
    for (const auto &[Temporary, Path] : Files)
      unlink(Temporary.c_str());
  }
  void add(const std::string &Path, const std::vector<uint8_t> &Bytes) {
    std::string Temporary = Path + ".XXXXXX";
    int FD = mkstemp(Temporary.data());
    if (FD < 0)
      bad("cannot write " + Path + ": " + strerror(errno));
    Files.emplace_back(Temporary, Path);
    size_t Done = 0;
    while (Done < Bytes.size()) {
      ssize_t N = ::write(FD, Bytes.data() + Done, Bytes.size() - Done);
      if (N <= 0)
        break;
      Done += static_cast<size_t>(N);
    }
    if (close(FD) != 0 || Done < Bytes.size())
      bad("cannot write " + Path + ": " + strerror(errno));
  }
  void commit() {
    for (const auto &[Temporary, Path] : Files)
      if (rename(Temporary.c_str(), Path.c_str()) != 0)
        bad("cannot write " + Path + ": " + strerror(errno));
    Files.clear();
  }

private:
  std::vector<std::pair<std::string, std::string>> Files;
};

// docs/numerics.md: the error of one rounding, per row. Two computations may
// each be off by it; the maximum norm allows a function that rounds twice.
double tolerance(const std::string &DType) {
  return DType == "f32" || DType == "f64" ? 1e-5
         : DType == "f16"                 ? 1e-3
         : DType == "bf16"                ? 8e-3
                                          : 6.25e-2;
}

void compareResult(const std::string &What, const std::string &Name,
                   const HostTensor &Got, const HostTensor &Want,
                   const Options &O, json &Report) {
  if (Got.Shape != Want.Shape)
    bad(What + ": result '" + Name + "' has shape " + shapeText(Got.Shape) +
        ", expected " + shapeText(Want.Shape));
  if (!bitsOf(Want.DType))
    bad(What + ": result '" + Name + "' is " + Got.DType + ", the file holds " +
        Want.DType + "; write --expect=" + Got.DType + ":FILE");
  Difference D = compare(Got, Want, O.Rtol, O.Atol);
  Report[Name] = {{"max_abs", D.MaxAbs},
                  {"row_euclidean", D.RowEuclidean},
                  {"row_maximum", D.RowMaximum}};
  bool Integer = Got.DType[0] == 'i';
  char Text[512];
  if (O.Elementwise || Integer) {
    if (D.Outside == 0)
      return;
    snprintf(Text, sizeof(Text),
             "%lld of %lld elements differ by more than %g + %g * |want|; the "
             "first is %lld: got %.9g, want %.9g",
             static_cast<long long>(D.Outside),
             static_cast<long long>(Want.elements()), O.Atol, O.Rtol,
             static_cast<long long>(D.FirstOutside),
             Elements(Got)[D.FirstOutside], Elements(Want)[D.FirstOutside]);
  } else {
    double Limit = tolerance(Got.DType);
    if (D.RowEuclidean <= 2 * Limit && D.RowMaximum <= 4 * Limit)
      return;
    snprintf(Text, sizeof(Text),
             "the worst row is off by %.3g (Euclidean, limit %.3g) and %.3g "
             "(maximum, limit %.3g), relative to the row",
             D.RowEuclidean, 2 * Limit, D.RowMaximum, 4 * Limit);
  }
  bad(What + ": result '" + Name + "': " + Text);
}

void checkInputs(const greta::Function &F, const std::vector<Input> &Inputs) {
  std::vector<greta::TensorInfo> Args = F.arguments();
  if (Inputs.size() != Args.size())
    bad("the function takes " + std::to_string(Args.size()) + " inputs, " +
        std::to_string(Inputs.size()) + " given");
  for (size_t I = 0; I < Args.size(); ++I)
    if (Inputs[I].DType != Args[I].dtype) {
      std::string Hint = Inputs[I].DType == "u16" || Inputs[I].DType == "u8"
                             ? "; write --input=" + Args[I].dtype +
                                   ":FILE for data saved as unsigned integers"
                             : "";
      bad("input " + std::to_string(I) + " (" + Inputs[I].Text + ") is " +
          Inputs[I].DType + ", argument '" + Args[I].name + "' is " +
          Args[I].dtype + Hint);
    }
}

std::string theFunction(const greta::Package &P, const Options &O) {
  if (!O.Function.empty())
    return O.Function;
  std::vector<std::string> Names = P.functions();
  if (Names.size() == 1)
    return Names[0];
  std::string All;
  for (const std::string &N : Names)
    All += (All.empty() ? "" : ", ") + N;
  bad("--function is needed; the package has " + All);
}

std::vector<HostTensor> onHost(const greta::Package &P,
                               const std::string &Function,
                               const std::vector<Input> &Inputs,
                               const std::vector<std::vector<uint8_t>> &Data) {
  greta::Runtime Host("host");
  Session S(Host, P, Function, "", Inputs);
  S.write(Data);
  S.launch();
  return S.read();
}

void print(const json &Report) {
  printf("%s on %s: variant %s\n",
         Report["function"].get<std::string>().c_str(),
         Report["device"].get<std::string>().c_str(),
         Report["variant"].get<std::string>().c_str());
  for (const char *What : {"check", "expect"})
    if (Report.contains(What))
      for (const auto &[Name, D] : Report[What].items())
        printf(
            "%s %s: max abs %.3g, worst row %.3g (Euclidean) %.3g (maximum)\n",
            What, Name.c_str(), D["max_abs"].get<double>(),
            D["row_euclidean"].get<double>(), D["row_maximum"].get<double>());
  if (Report.contains("median_us"))
    printf("%.2f us a launch (median of %u; min %.2f, max %.2f), %.1f GB/s of "
           "arguments and results, %u buffer sets\n",
           Report["median_us"].get<double>(), Report["reps"].get<unsigned>(),
           Report["min_us"].get<double>(), Report["max_us"].get<double>(),
           Report["gb_per_s"].get<double>(),
           Report["buffer_sets"].get<unsigned>());
  if (Report.contains("kernels"))
    for (const json &K : Report["kernels"])
      printf("  %-32s %.2f us\n", K["kernel"].get<std::string>().c_str(),
             K["us"].get<double>());
  if (Report.contains("copy"))
    printf("copy: %.1f GB/s (read + written, %zu bytes)\n",
           Report["copy"]["gb_per_s"].get<double>(),
           Report["copy"]["bytes"].get<size_t>());
}

} // namespace

Session::Session(greta::Runtime &Runtime, const greta::Package &Package,
                 const std::string &Name, const std::string &Variant,
                 const std::vector<Input> &Inputs)
    : Runtime(Runtime), Function(Runtime.load(Package, Name, Variant)),
      Stream(Runtime.stream()) {
  checkInputs(Function, Inputs);
  for (const Input &In : Inputs)
    Arguments.push_back({nullptr, In.Shape, 0});
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

int run(const Options &O) {
  json Report;
  if (O.Package.empty()) {
    if (O.BenchCopy.empty())
      bad("no package given; see --help");
    greta::Runtime Runtime(O.Device);
    json Copy = benchCopy(Runtime, O);
    Runtime.close();
    if (O.Json)
      printf("%s\n", json{{"copy", Copy}}.dump(2).c_str());
    else
      printf("copy: %.1f GB/s (read + written)\n",
             Copy["gb_per_s"].get<double>());
    return 0;
  }
  greta::Package Package(O.Package);
  std::string Function = theFunction(Package, O);
  std::vector<Input> Inputs;
  for (const std::string &Text : O.Inputs)
    Inputs.push_back(parseInput(Text));
  greta::Runtime Runtime(O.Device);
  OutputFiles Files;
  {
    Session S(Runtime, Package, Function, O.Variant, Inputs);
    std::vector<greta::TensorInfo> Results = S.Function.results();
    if (!O.Outputs.empty() && O.Outputs.size() != Results.size())
      bad("the function has " + std::to_string(Results.size()) + " results, " +
          std::to_string(O.Outputs.size()) + " --output given");
    if (!O.Expected.empty() && O.Expected.size() != Results.size())
      bad("the function has " + std::to_string(Results.size()) + " results, " +
          std::to_string(O.Expected.size()) + " --expect given");
    std::vector<std::vector<uint8_t>> Data;
    for (const Input &In : Inputs)
      Data.push_back(In.Make());
    S.write(Data);
    S.launch();
    std::vector<HostTensor> Got = S.read();
    json Device = json::parse(Runtime.info());
    Report = {{"function", Function},
              {"variant", S.Function.variant()},
              {"device", Device["name"]},
              {"spec", Device["spec"]}};
    for (size_t I = 0; I < O.Expected.size(); ++I) {
      Input E = parseInput(O.Expected[I]);
      compareResult("--expect", Results[I].name, Got[I],
                    {E.DType, E.Shape, E.Make()}, O, Report["expect"]);
    }
    if (O.Check) {
      std::vector<HostTensor> Want = onHost(Package, Function, Inputs, Data);
      for (size_t I = 0; I < Want.size(); ++I)
        compareResult("--check", Results[I].name, Got[I], Want[I], O,
                      Report["check"]);
    }
    if (O.Bench)
      Report.update(bench(S, Data, O));
    if (!O.BenchCopy.empty())
      Report["copy"] = benchCopy(Runtime, O);
    for (size_t I = 0; I < O.Outputs.size(); ++I)
      Files.add(O.Outputs[I], npyFile(Got[I]));
  }
  Runtime.close();
  Files.commit();
  if (O.Json)
    printf("%s\n", Report.dump(2).c_str());
  else
    print(Report);
  return 0;
}

} // namespace greta_run
