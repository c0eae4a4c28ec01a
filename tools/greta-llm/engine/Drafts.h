// Drafts.h: what a text probably goes on with, at no cost: where its last
// tokens were before, what followed them. In: the tokens so far. Out: the next
// ones, as a guess that the model then checks (Engine::check).
#ifndef GRETA_LLM_DRAFTS_H
#define GRETA_LLM_DRAFTS_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace greta::llm {

// At most `most` tokens; none where the last two have not been there before.
std::vector<int32_t> draftOf(const std::vector<int32_t> &tokens, size_t most);

} // namespace greta::llm
#endif
