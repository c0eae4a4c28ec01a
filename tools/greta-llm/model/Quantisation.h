// Quantisation.h: weights that are several tensors of safetensors. In: what
// config.json says under quantization_config, and tensors under the names of
// their weights with a suffix. Out: weights.
#ifndef GRETA_LLM_QUANTISATION_H
#define GRETA_LLM_QUANTISATION_H

#include "model/Model.h"

#include <map>
#include <string_view>

namespace greta::llm {

// How quantisers say in config.json what they did.
struct Quantisation {
  std::string method; // empty: none; mxfp4 says nothing else
  int64_t group = 0;  // -1: all of K
  bool isStoredLessOne = false;
  // Matrices of e4m3 have a scale for each block of so many rows and columns,
  // or, of 0, for each row or one for all, which tensors' shapes say.
  bool isFp8 = false;
  int64_t blockRows = 0, blockColumns = 0;
};
Quantisation quantisationOf(const std::string &path,
                            const nlohmann::json &config);

// A tensor that is a part of a quantised weight.
struct Part {
  std::vector<int64_t> shape;
  std::string dtype;
  const uint8_t *data = nullptr;
};
using Parts = std::map<std::string, Part>; // blk.0.attn_q.qweight

// The parts of an MXFP4 weight: names of gpt-oss's experts have no ".weight".
constexpr char mxfp4Blocks[] = "_blocks", mxfp4Scales[] = "_scales";

inline bool endsWith(std::string_view name, std::string_view end) {
  return name.size() > end.size() &&
         name.substr(name.size() - end.size()) == end;
}

// Makes weights of all parts, and fails where one is of none.
void joinParts(Model &model, const Parts &parts, const Quantisation &how);

} // namespace greta::llm
#endif
