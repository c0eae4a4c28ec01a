// Graph.h: the model's functions, as text of the greta dialect. In: a model and
// what activations are held in. Out: a module that greta-translate compiles,
// with these functions:
//
//   embed        rows of the embedding and of what positions have, rope's
//                tables or vectors of their own, for any number of tokens
//   sample       the next tokens of any number of sequences (Sampling.h)
//   promptC      a layer of class C (layers whose weights are held alike), for
//                parts of sequences; if several devices
//                compute it together, it sums x over them behind attention and
//                behind the MLP
//   layerC_T     the same for T tokens of T sequences
//   expertsC_T, expertsC_n, experts_order and experts_add
//                the rest of a layer with experts (Experts.h)
//   latentC_T, latentC_n and latent_join
//                what is before attention in a layer of latents (Latent.h)
//   head_T       the last norm and the logits of T tokens; head_n of any number
//
// An encoder has others (EncoderGraph.cpp).
//
// Arguments have the names of the weights, and of the engine's tensors
// (Bindings.cpp), which binds them by name.
#ifndef GRETA_LLM_GRAPH_H
#define GRETA_LLM_GRAPH_H

#include "engine/KvCache.h"
#include "engine/Pages.h"
#include "model/Model.h"

#include <string>
#include <vector>

namespace greta::llm {

// How a device holds a weight: rows of the activations' type (vectors: f32), 0,
// or packed, as <name>, <name>_scales and so on (packedParts): how many weights
// share a scale.
int64_t heldGroup(const Model &model, const std::string &name, Element element);

// For people: how many weights of which format become what.
std::string describeHeld(const Model &model, Element element);

// Parts of prompts of up to so many tokens have kernels of their own.
constexpr int64_t promptRanges[] = {32, 128};

// Layers of a class share functions.
struct LayerClasses {
  std::vector<size_t> classOf; // of a layer
  std::vector<int64_t> first;  // a layer of the class
};
LayerClasses classify(const Model &model, Element element);

// The facts of a model that its functions are compiled for, by name: two models
// with the same facts run with the same package. Rope's angles are not among
// them: they come from the model as tables.
std::map<std::string, std::string> factsOf(const Model &model, Element element,
                                           KvCache cache = KvCache::Full);
// The fact that says how keys and values are held, where they are not in full.
constexpr const char *kvCacheFact = "keys and values";

// Fails where a package with this manifest was compiled for another model.
void checkFacts(const std::string &manifest, const std::string &packagePath,
                const std::map<std::string, std::string> &facts);

// Names of functions; 0 tokens are any number.
std::string layerFunction(size_t layerClass, int64_t tokens);
std::string promptFunction(size_t layerClass);
std::string expertsFunction(size_t layerClass, int64_t tokens);
std::string latentFunction(size_t layerClass, int64_t tokens);
std::string headFunction(int64_t tokens);
std::string beginFunction(int64_t tokens);
constexpr const char *encodeFirstFunction = "encode_first";

// `sizes` are the numbers of tokens with functions of their own.
std::string writeModule(const Model &model, Element element, KvCache cache,
                        const std::vector<int64_t> &sizes);

} // namespace greta::llm
#endif
