// Embeddings.h: OpenAI's /v1/embeddings. In: requests with texts or tokens.
// Out: a vector for each, as numbers or in base64.
//
// One thread owns the encoder. Requests take turns, a pass of some texts at a
// time, in which texts of those behind it go along where there is room: a long
// one keeps no other from its answer, and one whose client has left is given
// up.
#ifndef GRETA_LLM_EMBEDDINGS_H
#define GRETA_LLM_EMBEDDINGS_H

#include "Options.h"
#include "engine/Encoder.h"
#include "server/Fields.h"
#include "server/Http.h"
#include "server/Requests.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace greta::llm {

class EmbeddingService {
public:
  EmbeddingService(const Options &options, const Model &model, Encoder &encoder,
                   const Tokenizer &tokenizer);
  ~EmbeddingService();

  void take(const std::shared_ptr<Exchange> &exchange);
  // Takes nothing from now on. Returns when all that was taken has its answer;
  // what has none after so many seconds fails.
  void drain(double seconds);
  // Why nothing is taken any more; "" as long as all is well.
  std::string problem() const;
  bool isLost() const { return deviceIsLost; }
  std::string metrics() const;

private:
  struct Job;
  std::shared_ptr<Job> read(const std::string &body) const;
  std::vector<int32_t> tokensOf(const OrderedJson &input) const;
  // The texts of a pass, and whose they are.
  struct Pass {
    Encoder::Texts texts;
    std::vector<std::shared_ptr<Job>> owners;
  };
  Pass nextPass() const;
  void embed(const Pass &pass);
  void end(const std::shared_ptr<Job> &job, const std::exception &problem);
  std::string answerOf(const Job &job) const;
  void run();
  void finish(const std::shared_ptr<Job> &job, int status, std::string text);

  const Options &options;
  const Model &model;
  Encoder &encoder;
  const Tokenizer &tokenizer;
  std::atomic<int64_t> finished{0}, cancelled{0}, refused{0}, failed{0},
      tokens{0}, passes{0};
  std::atomic<bool> deviceIsLost{false};

  mutable std::mutex mutex; // of what follows
  std::condition_variable changed;
  std::deque<std::shared_ptr<Job>> waiting; // the first is at work
  std::string why;
  bool isOver = false;
  std::thread thread;
};

} // namespace greta::llm
#endif
