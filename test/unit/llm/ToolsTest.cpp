// ToolsTest.cpp: calls in answers, which come in pieces of any size.
#include "server/Tools.h"

#include <gtest/gtest.h>

using namespace greta::llm;

namespace {

struct ToolCase {
  ToolChoice choice;
  const char *said, *text;
  std::vector<std::pair<std::string, std::string>> calls;
};

ToolChoice styled(ToolStyle style, bool isBegun = false) {
  ToolChoice choice;
  choice.style = style;
  choice.names = {"f", "g"};
  choice.isBegun = isBegun;
  return choice;
}

TEST(Tools, CallsAreReadFromPieces) {
  const ToolChoice hermes = styled(ToolStyle::Hermes),
                   mistral = styled(ToolStyle::Mistral),
                   llama = styled(ToolStyle::Llama),
                   none = styled(ToolStyle::None);
  const ToolCase cases[] = {
      {hermes, "just a <tool text\n", "just a <tool text\n", {}},
      {hermes,
       "so\n\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": [1], "
       "\"a\": \"\xc3\xa4\"}}\n</tool_call>\n<tool_call>{\"name\":\"g\"}"
       "</tool_call>",
       "so",
       {{"f", "{\"b\":[1],\"a\":\"\xc3\xa4\"}"}, {"g", "{}"}}},
      {hermes,
       "<tool_call>no</tool_call> x",
       "<tool_call>no</tool_call> x",
       {}},
      {hermes, "<tool_call>{\"name\": \"f\"}", "", {{"f", "{}"}}},
      {hermes, "a <tool_call>", "a <tool_call>", {}},
      {hermes, "a <tool_call>{} b", "a <tool_call>{} b", {}},
      {hermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": "
       "\"</tool_call>\"}}</tool_call> bye",
       "bye",
       {{"f", "{\"a\":\"</tool_call>\"}"}}},
      // The call behind one that is none is one.
      {hermes,
       "<tool_call>{\"name\": \"other\"}</tool_call>"
       "<tool_call>{\"name\": \"f\"}</tool_call>",
       "<tool_call>{\"name\": \"other\"}</tool_call>",
       {{"f", "{}"}}},
      {hermes,
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"b\": 1}</tool_call>"
       "<tool_call>{\"name\": \"f\"}</tool_call>",
       "<tool_call>{\"name\": \"f\", \"arguments\": {\"b\": 1}</tool_call>",
       {{"f", "{}"}}},
      {hermes,
       "<tool_call>{\"name\": \"other\"}</tool_call>",
       "<tool_call>{\"name\": \"other\"}</tool_call>",
       {}},
      {llama,
       "{\"name\": \"Bob\", \"age\": 3}",
       "{\"name\": \"Bob\", \"age\": 3}",
       {}},
      {mistral,
       "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": \"{}\"}, {\"name\": "
       "\"g\", \"arguments\": {}}]",
       "",
       {{"f", "{}"}, {"g", "{}"}}},
      {mistral,
       "so [TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": \"]}\"}}] "
       "and more",
       "soand more",
       {{"f", "{\"a\":\"]}\"}"}}},
      {mistral, "a [TOOL_CALLS][1] b", "a [TOOL_CALLS][1] b", {}},
      {mistral, "[TOOL_CALLS] hm", "[TOOL_CALLS] hm", {}},
      {mistral, "[1] [TOOL] x", "[1] [TOOL] x", {}},
      {styled(ToolStyle::Mistral, true),
       "[{\"name\": \"f\"}]",
       "",
       {{"f", "{}"}}},
      {llama,
       " {\"name\": \"f\", \"parameters\": {\"a\": 1}}",
       "",
       {{"f", "{\"a\":1}"}}},
      {llama,
       "{\"name\": \"f\"}; {\"name\": \"g\"}\n",
       "",
       {{"f", "{}"}, {"g", "{}"}}},
      {llama,
       "{\"name\": \"f\"}; then {\"name\": \"g\"}",
       "; then {\"name\": \"g\"}",
       {{"f", "{}"}}},
      {llama,
       "{\"name\": \"f\", \"parameters\": {}} bye",
       " bye",
       {{"f", "{}"}}},
      {llama,
       "{\"name\": \"f\", \"age\": 3}",
       "{\"name\": \"f\", \"age\": 3}",
       {}},
      {llama, " <|python_tag|>f()", " <|python_tag|>f()", {}},
      {llama, "<|python_tag|>{\"name\": \"f\"}", "", {{"f", "{}"}}},
      {llama, "<|python {\"name\": \"f\"}", "<|python {\"name\": \"f\"}", {}},
      {llama, "{\"a\": 1}", "{\"a\": 1}", {}},
      {llama, "I {\"name\": \"f\"}", "I {\"name\": \"f\"}", {}},
      {none,
       "<tool_call>{\"name\": \"f\"}</tool_call>",
       "<tool_call>{\"name\": \"f\"}</tool_call>",
       {}}};
  for (const ToolCase &one : cases)
    for (size_t size : {1, 2, 3, 7, 1000}) {
      CallReader reader(one.choice);
      std::string text, said = one.said;
      std::vector<std::pair<std::string, std::string>> calls;
      for (size_t at = 0; at < said.size(); at += size) {
        CallReader::Part part =
            reader.take(said.substr(at, size), at + size >= said.size());
        text += part.text;
        for (const ToolCall &call : part.calls)
          calls.push_back({call.name, call.arguments});
      }
      EXPECT_EQ(text, one.text) << said << " by " << size;
      EXPECT_EQ(calls, one.calls) << said << " by " << size;
    }
}

TEST(Tools, OneCallAtATime) {
  ToolChoice choice = styled(ToolStyle::Mistral);
  choice.isSingle = true;
  CallReader reader(choice);
  CallReader::Part part =
      reader.take("[TOOL_CALLS][{\"name\": \"f\"}, {\"name\": \"g\"}]", true);
  ASSERT_EQ(part.calls.size(), 1u);
  EXPECT_EQ(part.calls[0].name, "f");
}

TEST(Tools, DeepArguments) {
  std::string deep = std::string(100, '[') + std::string(100, ']');
  CallReader reader(styled(ToolStyle::Llama));
  CallReader::Part part =
      reader.take("{\"name\": \"f\", \"parameters\": " + deep + "}", true);
  ASSERT_EQ(part.calls.size(), 1u);
  EXPECT_EQ(part.calls[0].arguments, deep);
}

TEST(Tools, StylesOfTemplates) {
  EXPECT_EQ(toolStyleOf("{{ messages }}"), ToolStyle::None);
  EXPECT_EQ(toolStyleOf("{% if tools %}<tool_call>"), ToolStyle::Hermes);
  EXPECT_EQ(toolStyleOf("{% if tools %}[TOOL_CALLS]"), ToolStyle::Mistral);
  EXPECT_EQ(toolStyleOf("{% if tools %}{\"parameters\""), ToolStyle::Llama);
}

} // namespace
