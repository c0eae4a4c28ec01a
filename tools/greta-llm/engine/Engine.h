// Engine.h: a model on a device. In: a model, the package that was compiled for
// it, and tokens of sequences. Out: logits, or the tokens that the device chose
// by itself. Sequences keep their keys and values in pages of one cache that
// all share, so any of them may be evaluated together.
//
// A sequence that generates has a place. The input of a step of all places is
// on the device, where the step before it left it, so steps are queued one
// behind the other and the host reads their tokens when it likes.
#ifndef GRETA_LLM_ENGINE_H
#define GRETA_LLM_ENGINE_H

#include "Progress.h"
#include "engine/KvCache.h"
#include "engine/Pages.h"
#include "engine/Sampling.h"
#include "engine/Team.h"
#include "engine/Weights.h"

#include <atomic>
#include <functional>
#include <map>

namespace greta::llm {

class Drafts;
struct Options;

struct EngineOptions {
  std::string device;
  // So many engines compute the model together; of them it is the one with this
  // number. They are processes that meet at this address, or, where there is
  // none, have these devices, and the first one makes the others.
  size_t count = 1, number = 0;
  std::string meet;
  std::shared_ptr<Meeting> meeting;
  std::vector<std::string> devices;
  std::shared_ptr<Team> team;
  // They have layers, not parts of all: so many each, in the order of layers,
  // or none to divide them by memory. The first engine has the last layers, and
  // the others those before, in their order.
  bool isByLayers = false;
  std::vector<int64_t> layersOfStages;
  int64_t context = 0;       // tokens of all sequences; 0: what fits
  int64_t chunk = 2048;      // tokens that are evaluated together at most
  int64_t sequences = 1;     // that generate together
  bool mayHaveFewer = false; // sequences, where memory is scarce
  bool usesGraphs = true;    // of the steps with functions of their own
  int64_t drafts = 0;        // most tokens that are guessed for a step
  bool keepsSize = false; // steps take the same functions, however few generate
  bool isQuiet = true;
  std::string kvCache; // "": as the package says

  static EngineOptions of(const Options &options);
};

// How many of `most` sequences are to share a KV cache of so many tokens, for a
// model with such a context.
int64_t sequencesThatFit(int64_t cache, int64_t context, int64_t most);
std::string nameOfDevice(const greta::Runtime &runtime);
// A function of the package; fails, with its path, where there is none.
greta::Function loadFunction(greta::Runtime &runtime,
                             const greta::Package &package,
                             const std::string &packagePath,
                             const std::string &name);
// Fails where a package is another model's: where a function has an argument
// that `bind` does not know, or whose rank, type or static dimensions differ.
void checkArguments(
    const greta::Function &function, const std::string &packagePath,
    const Weights &weights, int64_t layer,
    const std::function<greta::Tensor(const std::string &)> &bind);

class Engine {
public:
  Engine(const Model &model, const std::string &packagePath,
         const EngineOptions &options);
  ~Engine();

  // Pages for as many tokens more; false where the cache has no more.
  bool reserve(Sequence &sequence, int64_t tokens) {
    return cache.reserve(sequence, tokens);
  }
  // The same for a sequence that generates at a place, and more at once where
  // the cache has them.
  bool extend(int64_t place, Sequence &sequence, int64_t tokens, int64_t more);
  void release(Sequence &sequence) { cache.release(sequence); }
  // The prefix cache (Pages.h).
  int64_t share(Sequence &sequence, const std::vector<int32_t> &tokens) {
    return cache.share(sequence, tokens);
  }
  void remember(Sequence &sequence, const std::vector<int32_t> &tokens,
                int64_t count) {
    cache.remember(sequence, tokens, count);
  }

  // Tokens behind a sequence's others; their pages are reserved.
  struct Part {
    Sequence *sequence;
    const int32_t *tokens;
    size_t count; // 1 at least
  };
  // Queues parts of mostParts sequences at most. Several are one pass, and have
  // no more than `chunk` tokens together.
  void append(const std::vector<Part> &parts);
  void append(Sequence &sequence, const int32_t *tokens, size_t count) {
    append({{&sequence, tokens, count}});
  }
  // Queues one, and the logits of its tokens from `first` on, a row each.
  const std::vector<float> &evaluate(Sequence &sequence, const int32_t *tokens,
                                     size_t count, size_t first);
  // One token with the functions that generation takes. Nothing generates.
  const std::vector<float> &evaluateOne(Sequence &sequence, int32_t token);

  // Room for so many sequences that generate; those before are forgotten.
  void makePlaces(int64_t sequences);
  // The tokens that places have at some point, when the device has come there.
  class Chosen {
  public:
    int32_t operator[](int64_t place);
    // The logits that they were chosen from, changed as Sampling.h says; null
    // where nobody wants them (wantLogits).
    const float *logits(int64_t place);

  private:
    friend Engine;
    struct State;
    std::shared_ptr<State> state;
  };
  // Queues the choice of a sequence's first token, behind the end of its
  // prompt, which is this part of the last pass. The last `said` tokens of the
  // prompt count as generated.
  Chosen begin(int64_t place, const Sequence &sequence,
               const std::vector<int32_t> &prompt, const Sampling &sampling,
               int64_t left, int64_t said = 0, size_t part = 0);
  // The tokens that the place's next choice is from (Sampling.h). Behind it the
  // place waits, and takes part in no step, until there is a mask again.
  void setMask(int64_t place, const std::vector<uint32_t> &mask);
  // Takes what a place has to one that has nothing, so that a step needs fewer
  // places. Tokens that are chosen already stay those of the old place.
  void move(int64_t from, int64_t to);
  // Rows that a step of the first `count` places computes.
  int64_t rowsOf(int64_t count) const;
  // Ends what it computes with others, on all of them.
  void abort(const std::string &why);
  // Says whether several devices compute the model. Behind an error of one they
  // are not in step any more, so it is the end of all.
  bool isShared() const { return options.count > 1; }
  // Returns what `work` does, the exit status. In a process that is not the
  // first of several it does instead what that one tells it, until that one
  // ends. A device's error has the words of the one that failed first.
  int lead(const std::function<int()> &work);
  // Does what the first of several has done.
  void take(const Call &call);
  // Says whether each has a part of every layer, whose sums are over all.
  bool hasSums() const { return shard != nullptr; }
  // The cause of an error is another device's where one has failed.
  std::string causeOf(const std::exception &problem) const;
  // Why one of the others has failed; "" if none has.
  std::string failure() const {
    return isShared() ? options.team->failure() : "";
  }
  // Whether the logits of a place's choices are read, too.
  void wantLogits(int64_t place, bool wants) {
    places.wantsLogits[static_cast<size_t>(place)] = wants;
  }
  // Generates at the first place, from the end of a sequence's prompt: `take`
  // gets each token and says whether to go on. Returns how many it took. With
  // `drafts` a step also checks guesses of what follows.
  int64_t generate(const Sequence &sequence, const std::vector<int32_t> &prompt,
                   const Sampling &sampling, int64_t most,
                   const std::function<bool(int32_t)> &take, Drafts *drafts);
  // Queues a step that says behind each of these tokens what comes next. Each
  // has a place of its own, in their order. So a guess is right if it is what
  // the place before says, and each token is the one that steps without guesses
  // choose, but for the roundings of kernels for several tokens. Sequences that
  // are checked want no more than one token of begin().
  Chosen check(const std::vector<Checked> &sequences);
  // How many tokens were guessed, and how many of these were right.
  std::pair<int64_t, int64_t> drafted() const { return {guessed, right}; }
  // Queues the next token of each place that wants more and does not wait.
  // Pages are reserved for the token that it begins with and the one that it
  // leaves. With parts of prompts it is one pass over these and the rows of
  // stepPlaces() places, which have `chunk` tokens together at most, by the
  // functions of prompts.
  Chosen step(const std::vector<Part> &parts = {});
  // The places up to the last one that the next step would take.
  int64_t stepPlaces() const;
  // Whether a step may have parts: all places are in one batch.
  bool stepsWithParts() const { return places.batches.size() == 1; }
  // Uses everything that a step needs once, so that drivers have compiled it.
  void warmUp();
  // The place's sequence wants none.
  void end(int64_t place);
  // After an error: what the places and the cache hold is not known.
  void forget() {
    forgetPlaces();
    cache.forget();
  }

  // While on, kernels are launched one by one and timed by the device.
  void profile(bool on);
  std::vector<std::pair<std::string, double>> times() { return stream.times(); }
  // Bytes a second, read and written, of a copy on the device.
  double copyBandwidth();
  std::string manifest() const { return package.manifest(); }
  // The variant's id of each function that is used.
  std::map<std::string, std::string> variants() const;
  // The keys that a token sees in a function; 0: all.
  int64_t windowOf(const std::string &function) const;
  // The size of a function's argument: its bytes, and the elements of a matrix;
  // 0 if it is no weight.
  std::pair<size_t, int64_t> weightSize(const std::string &function,
                                        const std::string &name) const;

  const Config &config() const { return model.config; }
  int64_t vocabulary() const { return model.config.vocabulary; }
  int64_t chunk() const { return options.chunk; }
  // The most sequences, or tokens of them, that a step takes together.
  int64_t batch() const { return places.size; }
  // Rows that steps have computed, of which some are nobody's.
  int64_t stepRows() const { return computedRows; }
  int64_t capacity() const { return pages * pageSize; }
  // As many may generate together.
  int64_t sequences() const { return options.sequences; }
  int64_t freeTokens() const { return cache.free() * pageSize; }
  std::string deviceName() const;
  greta_memory memory() const { return runtime.memory(); }
  size_t weightBytes() const { return weights->bytes(); }
  const char *elementName() const { return nameOf(element); }

private:
  // The functions for a token of each of some sequences, or for parts of
  // sequences.
  struct Step {
    int64_t size; // 0: parts
    // By class, of those that the device has and that have some.
    std::map<size_t, greta::Function> layers, experts, latents;
    std::vector<greta::Function> head;  // of the last stage
    std::vector<greta::Function> begin; // if layers hand on norms
  };
  // The arrays of an input, in the order in which they lie in its buffer.
  enum { Tokens, Positions, Slots, Lengths, Begins, Tables };
  // The place of the input of some tokens: `tokens` of the `total` numbers that
  // each array of a buffer has, from `first` on.
  struct Inputs {
    const Buffer *buffer;
    int64_t total, first, tokens, sequences, pages;
    size_t offset(int array) const {
      int64_t columns = array == Tables ? pages : 1;
      return static_cast<size_t>(array * total + first * columns) * 4;
    }
    size_t bytes() const {
      return static_cast<size_t>(Tables * total + sequences * pages) * 4;
    }
  };

  greta::Function load(const std::string &name);
  Element elementOfPackage();
  KvCache kvCacheOfPackage() const;
  // Counts keys and values, or latents, of all heads of a token in a layer.
  size_t cachedBytes() const;
  void makeCaches();
  int64_t contextThatFits() const;
  int64_t agreeOnContext();
  void checkArguments(const greta::Function &function, int64_t layer);
  Step loadStep(int64_t size);
  void makeTurns();
  int64_t layerOf(const std::string &function) const;
  const Step &stepFor(int64_t sequences) const;
  greta::Tensor bind(const std::string &name, int64_t layer,
                     const Inputs &inputs, const Buffer &x, int64_t xRow);
  void makePairs();
  greta::Tensor bindPairs(const std::string &name, int64_t tokens);
  void queueExperts(const greta::Function &experts, const Inputs &inputs,
                    int64_t layer);
  greta::Tensor bindCache(const std::string &name, int64_t layer);
  greta::Tensor bindLatent(const std::string &name, int64_t tokens);
  void queueLatents(const greta::Function &function, const Inputs &inputs,
                    int64_t layer);
  greta::Tensor bindTurns(const std::string &name, int64_t layer,
                          int64_t tokens);
  greta::Tensor bindHanded(const std::string &name, int64_t layer,
                           int64_t tokens);
  std::vector<greta::Tensor> bindAll(const greta::Function &function,
                                     int64_t layer, const Inputs &inputs,
                                     const Buffer &x, int64_t xRow);
  // A pass over parts of sequences has this input; tables have `columns` pages.
  Inputs inputsOf(int64_t tokens, int64_t sequences, int64_t columns) const;
  Inputs inputsOfPlaces() const;
  static int32_t slotOf(const Sequence &sequence, int64_t position);
  void appendPass(const std::vector<Part> &parts, int64_t rows = 0);
  void readLogits(int64_t rows);
  void queueLayers(const Step &step, const Inputs &inputs);
  void queueHead(const Step &step, const Inputs &inputs, int64_t row,
                 int64_t rows);
  void queueStep(int64_t batch, const Step &step);
  void queueSample(int64_t rows, size_t numbers);
  void runStep(int64_t batch, int64_t count);
  void clearPlaces();
  void forgetPlaces() {
    tell([] { return Call{Call::ForgetPlaces}; });
    placesAreClear = false;
  }
  int64_t wantedPlaces() const;
  std::vector<int64_t> choosing() const;
  int64_t generateWithDrafts(const Sequence &sequence,
                             const std::vector<int32_t> &prompt,
                             const Sampling &sampling, int64_t most,
                             const std::function<bool(int32_t)> &take,
                             Drafts &drafts);
  void writeTable(int64_t place, const Sequence &sequence);
  void writeMask(int64_t place, const std::vector<uint32_t> &mask);
  std::vector<int32_t> writeCounts(int64_t place,
                                   std::vector<int32_t>::const_iterator first,
                                   std::vector<int32_t>::const_iterator end);
  void writeChecked(const Checked &one, int64_t place);
  void writeLeft(int64_t place, int64_t left);
  void clearInput(int64_t place);
  void awaitMask(int64_t place);
  Chosen newRead();
  void queueLogits(Chosen &chosen, int64_t place, int64_t row);
  void queueTokens(Chosen &chosen);
  // A place's line of the arrays: functions take a batch of them at a time.
  int64_t lineOf(int64_t place) const {
    return place / places.size * pitch() + place % places.size;
  }
  int64_t pitch() const { return (places.size + 3) / 4 * 4; }

  // The same call for the others, which `make` returns.
  template <typename Make> void tell(Make make) const {
    if (others.empty())
      return;
    auto call = std::make_shared<const Call>(make());
    for (const std::unique_ptr<Follower> &other : others)
      other->add(call);
  }
  void makeOthers(const Model &whole);
  void follow();
  void tellAppended(const std::vector<Part> &parts, bool isStep = false) const;
  uint64_t alike() const;
  // By which they are several.
  std::string option() const {
    return options.meet.empty() ? "--devices" : "--ranks";
  }
  Stage agreeOnStage();
  // This finds the first of the device's layers that is one; -1: none is.
  int64_t ownLayer(const std::function<bool(int64_t)> &isOne) const;
  int64_t layerOfClass(size_t number) const;
  void receiveResidual(int64_t tokens);
  void sendResidual(int64_t tokens);
  std::vector<greta_comm_transfer> residual(int64_t layer, int64_t tokens,
                                            bool receives) const;
  void shareNextInput();
  void join();
  Buffer allocateForOthers(size_t bytes);
  void reduce(const Buffer &from, int64_t tokens);
  size_t lastX() const { return static_cast<size_t>(model.config.layers % 2); }

  std::unique_ptr<Model> shard; // of several devices
  const Model &model;
  EngineOptions options;
  Progress progress; // while the constructor loads
  std::string packagePath;
  greta::Runtime runtime;
  greta::Package package;
  greta::Stream stream;
  Element element;
  KvCache kvCache;
  LayerClasses classes;
  Stage stage;
  std::vector<Team::Member> members; // of several devices, by number
  std::unique_ptr<Weights> weights;
  std::vector<greta::Function> embed, sample;
  // Functions of layers with experts, and the buffers between them (Experts.h).
  std::vector<greta::Function> orderExperts, orderExpertsOfOne, addExperts;
  struct Pairs {
    greta::Buffer normed, logits, weights, places, offsets, rows, results;
    std::map<std::string, greta::Buffer> biases; // by biasOfPairs
  };
  Pairs pairs;
  // The middle functions of layers of latents, and the buffers between these
  // and the rest.
  std::vector<greta::Function> joinLatents;
  std::map<std::string, greta::Buffer> latents;
  std::vector<Step> steps; // in the order of sizes, a prompt's at the end
  greta::Buffer x[2], handed[2], inputBuffer, logitBuffer;
  // Cosines and sines of each rope: of the tokens at hand, and of all
  // positions.
  struct Turns {
    greta::Buffer cos, sin, cosTable, sinTable;
  };
  std::vector<Turns> turns;
  std::vector<greta::Buffer> keys, values, keyScales, valueScales;
  int64_t pages, positions, logitRows;
  std::vector<int64_t> ends; // of the last pass's parts, in rows
  std::atomic<int64_t> computedRows{0};
  int64_t guessed = 0, right = 0;
  Pages cache;
  std::vector<int32_t> inputWords;
  std::vector<float> logits;

  // Places are evaluated in batches of `size`, of each the first ones that have
  // something to do, by the functions for the smallest number that is enough.
  struct Places {
    int64_t size = 1;
    int64_t lines = 0; // of the arrays of `input`, and of `rows`
    greta::Buffer input, rows, numbers, masks, counts;
    std::vector<int64_t> left; // tokens that a place's sequence wants
    std::vector<std::vector<int32_t>> tables; // of pages, as they were written
    std::vector<bool> wantsLogits;
    std::vector<bool> isMasked, waits; // for a mask
    // A batch's graphs by the functions' size; each is recorded when first
    // used.
    std::vector<std::map<int64_t, greta::Graph>> batches;
  };
  Places places;
  bool placesAreClear = false;
  std::vector<std::shared_ptr<Chosen::State>> reads;
  std::unique_ptr<greta::Comm> comm;
  std::vector<std::unique_ptr<Follower>> others; // end before all else
};

} // namespace greta::llm
#endif
