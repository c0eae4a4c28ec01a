// ToolsTest.cpp: calls in answers, which come in pieces of any size.
#include "server/Tools.h"
#include "grammar/Matcher.h"
#include "model/Model.h"

#include <gtest/gtest.h>

using namespace greta::llm;

namespace {

struct ToolCase {
  ToolChoice choice;
  const char *said, *text;
  std::vector<std::pair<std::string, std::string>> calls;
  const char *reasoning = "";
  bool isCut = false;
};

ToolChoice styled(ToolStyle style, const char *begun = "") {
  ToolChoice choice;
  choice.style = style;
  choice.names = {"f", "g"};
  choice.begun = begun;
  return choice;
}

nlohmann::ordered_json coderTools() {
  return nlohmann::ordered_json::parse(R"([
    {"function": {"name": "f", "parameters": {
      "type": "object",
      "properties": {
        "a": {"type": "string", "description": "any text"},
        "n": {"type": "integer", "minimum": 1, "maximum": 9},
        "c": {"$ref": "#/$defs/Color"},
        "o": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "l": {"type": "array", "items": {"$ref": "#/$defs/Number"}},
        "t": {"type": ["boolean", "null"], "default": null},
        "x": {},
        "b": {"allOf": [{"type": ["string", "integer"]}, {"minimum": 2}],
              "type": "integer", "maximum": 4},
        "e": {"allOf": [{"$ref": "#/$defs/Color"}, {"enum": ["red", 3]}]},
        "s": {"allOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]},
                        {"type": "string"}]}},
      "required": ["a", "n"],
      "$defs": {"Color": {"enum": ["red", "green", 3]},
                "Number": {"type": "integer"}}}}},
    {"function": {"name": "g"}}])");
}

ToolChoice coderChoice(const char *begun = "") {
  ToolChoice choice = styled(ToolStyle::Coder, begun);
  choice.kinds = std::make_shared<const std::map<std::string, ParameterKinds>>(
      kindsOfParameters(coderTools()));
  return choice;
}

void expectRead(const ToolCase &one) {
  for (size_t size : {1, 2, 3, 7, 1000}) {
    CallReader reader(one.choice);
    std::string text, reasoning, said = one.said;
    std::vector<std::pair<std::string, std::string>> calls;
    for (size_t at = 0; at < said.size(); at += size) {
      CallReader::Part part =
          reader.take(said.substr(at, size), at + size >= said.size(),
                      one.isCut && at + size >= said.size());
      text += part.text;
      reasoning += part.reasoning;
      for (const ToolCall &call : part.calls)
        calls.push_back({call.name, call.arguments});
    }
    EXPECT_EQ(text, one.text) << said << " by " << size;
    EXPECT_EQ(calls, one.calls) << said << " by " << size;
    EXPECT_EQ(reasoning, one.reasoning) << said << " by " << size;
  }
}

TEST(Tools, CallsBetweenTagsAreReadFromPieces) {
  const ToolChoice coder = coderChoice();
  const ToolCase cases[] = {
      {coder, "a < b <function", "a < b <function", {}},
      {coder, "a <tool_call>", "a <tool_call>", {}},
      {coder, "a <tool_call>\n b", "a <tool_call>\n b", {}},
      {coder,
       "so\n\n<tool_call>\n<function=f>\n<parameter=a>\n5\n</parameter>\n"
       "<parameter=n>\n5\n</parameter>\n</function>\n</tool_call>\n"
       "<tool_call>\n<function=g>\n</function>\n</tool_call>",
       "so",
       {{"f", "{\"a\":\"5\",\"n\":5}"}, {"g", "{}"}}},
      // Kinds decide; what is of no kind is a text.
      {coder,
       "<tool_call>\n<function=f>\n<parameter=o>\nnull\n</parameter>\n"
       "<parameter=c>\ngreen\n</parameter>\n<parameter=l>\n[1, 2]\n"
       "</parameter>\n<parameter=t>\nTrue\n</parameter>\n<parameter=x>\n"
       "{\"q\": 1}\n</parameter>\n<parameter=y>\n\"w\"\n</parameter>\n"
       "</function>\n</tool_call>",
       "",
       {{"f", "{\"o\":null,\"c\":\"green\",\"l\":[1,2],\"t\":true,"
              "\"x\":{\"q\":1},\"y\":\"\\\"w\\\"\"}"}}},
      {coder,
       "<tool_call>\n<function=f>\n<parameter=o>\n5\n</parameter>\n"
       "<parameter=n>\nfive\n</parameter>\n</function>\n</tool_call>",
       "",
       {{"f", "{\"o\":\"5\",\"n\":\"five\"}"}}},
      // A value fits all of several schemas.
      {coder,
       "<tool_call>\n<function=f>\n<parameter=b>\n3\n</parameter>\n"
       "<parameter=e>\n3\n</parameter>\n<parameter=s>\n5\n</parameter>\n"
       "</function>\n</tool_call>",
       "",
       {{"f", "{\"b\":3,\"e\":3,\"s\":\"5\"}"}}},
      // Some calls have no marks around them, and no line breaks.
      {coder,
       "<function=f><parameter=a>\n\nx\n\n</parameter></function> bye",
       "bye",
       {{"f", "{\"a\":\"\\nx\\n\"}"}}},
      {coder,
       "<tool_call>\n<function=f>\n<parameter=a>\nx</parameter> y</function>\n"
       "</tool_call>\n</parameter>\n</function>\n</tool_call>",
       "",
       {{"f", "{\"a\":\"x</parameter> y</function>\\n</tool_call>\"}"}}},
      {coder,
       "<tool_call>\n<function=f>\n<parameter=a>\nx\n</parameter>\n",
       "",
       {{"f", "{\"a\":\"x\"}"}}},
      {coder,
       "<tool_call>\n<function=f>\n<parameter=a>\nx",
       "<tool_call>\n<function=f>\n<parameter=a>\nx",
       {}},
      {coder,
       "<tool_call>\n<function=h>\n</function>\n</tool_call> x",
       "<tool_call>\n<function=h>\n</function>\n</tool_call> x",
       {}},
      {coder,
       "<tool_call>\n<function=f>\nhm\n</function>\n<function=g></function>",
       "<tool_call>\n<function=f>\nhm\n</function>",
       {{"g", "{}"}}},
      {coderChoice("<tool_call>"),
       "\n<function=g>\n</function>\n</tool_call>",
       "",
       {{"g", "{}"}}}};
  for (const ToolCase &one : cases)
    expectRead(one);
}

// The arguments have no end, as in llama.cpp's server.
TEST(Tools, CallsThatAreCut) {
  const ToolChoice coder = coderChoice();
  auto cut = [&](const char *said, const char *text,
                 std::vector<std::pair<std::string, std::string>> calls) {
    expectRead({coder, said, text, std::move(calls), "", true});
  };
  const std::string begin = "so\n<tool_call>\n<function=f>\n",
                    one = begin + "<parameter=a>\nx\n</parameter>\n";
  for (const char *more :
       {"", "<param", "<parameter=", "<parameter=n>", "<parameter=n>\n5",
        "<parameter=n>\n5\n</param", "</function", "</"})
    cut((one + more).c_str(), "so", {{"f", "{\"a\":\"x\""}});
  cut((one + "<parameter=n>\n5\n</parameter>").c_str(), "so",
      {{"f", "{\"a\":\"x\",\"n\":5"}});
  for (const char *more : {"", "<", "<parameter=a>\nx"})
    cut((begin + more).c_str(), "so", {{"f", "{"}});
  // A call that has its end is whole, and one without a name is a text.
  cut((one + "</function>\n").c_str(), "so", {{"f", "{\"a\":\"x\"}"}});
  for (const char *none :
       {"so\n<tool_call>\n<function=f", "so\n<tool_call>\n<function=h>\n",
        "so\n<tool_call>\n<function=f>\nhm"})
    cut(none, none, {});
  // Other calls that are cut are texts.
  const char *json = "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1";
  expectRead({styled(ToolStyle::Hermes), json, json, {}, "", true});
}

TEST(Tools, GrammarOfParameters) {
  const Model model = readModel("", "tiny");
  const Tokenizer tokenizer(model);
  const SortedVocabulary vocabulary(tokenizer,
                                    static_cast<int64_t>(tokenizer.size()));
  ToolChoice choice = coderChoice("<tool_call>");
  choice.isRequired = true;
  auto grammar =
      std::make_shared<const Grammar>(grammarOfCalls(coderTools(), choice));
  const std::string head = "\n<function=f>\n<parameter=a>\n",
                    number = "\n</parameter>\n<parameter=n>\n7\n</parameter>\n",
                    tail = "</function>\n</tool_call>";
  auto isTaken = [&](const std::string &said) {
    Matcher matcher(grammar, vocabulary);
    return matcher.take(said) && matcher.mayEnd();
  };
  auto with = [&](const std::string &name, const std::string &value) {
    return isTaken(head + "x" + number + "<parameter=" + name + ">\n" + value +
                   "\n</parameter>\n" + tail);
  };
  EXPECT_TRUE(isTaken("\n<function=g>\n" + tail));
  EXPECT_TRUE(isTaken("\n<function=g>\n" + tail +
                      "\n<tool_call>\n<function=g>\n" + tail));
  for (const char *text : {"", "x", "a\nb", "<", "<<</parameter", "</param<>",
                           "</parameter\n", "if (a < b) <b>\"\xc3\xa4\"</b>"}) {
    EXPECT_TRUE(isTaken(head + text + number + tail)) << text;
    CallReader reader(choice);
    CallReader::Part part = reader.take(head + text + number + tail, true);
    ASSERT_EQ(part.calls.size(), 1u) << text;
    EXPECT_EQ(nlohmann::json::parse(part.calls[0].arguments)["a"], text);
  }
  EXPECT_FALSE(isTaken(head + "x" + tail));
  EXPECT_FALSE(isTaken(head + "</parameter>" + number + tail));
  EXPECT_FALSE(isTaken(head + "<</parameter>y" + number + tail));
  EXPECT_TRUE(with("c", "red") && with("c", "3"));
  EXPECT_FALSE(with("c", "\"red\"") || with("c", "blue"));
  EXPECT_TRUE(with("b", "2") && with("e", "red") && with("e", "3"));
  EXPECT_FALSE(with("b", "5") || with("b", "two") || with("e", "green"));
  EXPECT_TRUE(with("s", "null") && with("s", "5"));
  EXPECT_TRUE(with("o", "null") && with("o", "no") && with("x", "what"));
  EXPECT_TRUE(with("l", "[1, 2]") && with("t", "null") && with("t", "true"));
  EXPECT_FALSE(with("l", "[true]") || with("t", "1") || with("y", "1"));
}

TEST(Tools, ParametersThatAreRefused) {
  auto refusal = [](const std::string &parameters) -> std::string {
    auto tools = coderTools();
    tools[0]["function"]["parameters"] =
        nlohmann::ordered_json::parse(parameters);
    (void)kindsOfParameters(tools);
    try {
      (void)grammarOfCalls(tools, coderChoice());
    } catch (const std::exception &why) {
      return why.what();
    }
    return "";
  };
  std::string doubled =
                  R"({"properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": {)",
              many = R"({"properties": {)";
  for (int i = 0; i < 40; ++i) {
    std::string next = R"({"$ref": "#/$defs/)" + std::to_string(i + 1) + "\"}";
    doubled += "\"" + std::to_string(i) + R"(": {"anyOf": [)" + next + ", " +
               next + "]}, ";
  }
  std::string types;
  for (int i = 0; i < 100'000; ++i)
    types += "\"integer\", ";
  for (int i = 0; i < 257; ++i)
    many += (i ? ", \"" : "\"") + std::to_string(i) + "\": {}";
  const std::pair<std::string, const char *> cases[] = {
      {R"({"properties": {"a": {"type": "string", "maxLength": 3}}})",
       "'maxLength' of a text is not supported"},
      {R"({"$ref": "#/$defs/a", "$defs": {"a": {}}})",
       "'$ref' of a function's parameters is not supported"},
      {"[]", "anything but an object of parameters is not supported"},
      {R"({"properties": {"a>": {}}})", "a parameter whose name is empty"},
      {R"({"properties": {"a": {"enum": ["</parameter>"]}}})",
       "a text with </parameter> is not supported"},
      {R"({"properties": {"a": {}}, "required": ["b"]})",
       "'required' names something"},
      {R"({"properties": {"a": {"$ref": "#/$defs/b"}}})",
       "'$ref' names something that is not there"},
      {R"({"properties": {"a": {"$ref": "#/properties/a"}}})",
       "a parameter that refers to itself"},
      {R"({"properties": {"a": {"anyOf": [{}], "type": "string"}}})",
       "beside others in a JSON schema"},
      {R"({"properties": {"a": {"type": "integer", "not": {}}}})",
       "'not' of a JSON schema is not supported"},
      {R"({"properties": {"a": {"allOf": [{"pattern": "x"}, {"pattern": "y"}]}}})",
       "'allOf' of JSON schemas with different 'pattern' is not supported"},
      {R"({"properties": {"a": {"allOf": [{"type": "string"}, {"minLength": 1}]}}})",
       "'minLength' of a text is not supported"},
      {R"({"properties": {"a": {"allOf": [{"$ref": "#/properties/a"}]}}})",
       "nested too deep, or contains itself"},
      {R"({"properties": {"a": {"enum": ["x", "y"], "const": "x"}}})",
       "'enum' beside 'const' is not supported"},
      {R"({"properties": {"a": {"enum": "x"}}})", "'enum' has to be a list"},
      {R"({"properties": {"a": {"minLength": 1}}})",
       "'minLength' of a text is not supported"},
      {R"({"properties": {"a": {"type": [)" + types + R"("null"]}}})",
       "'type' has more than 7 types"},
      {R"({"properties": []})", "'properties' has to be an object"},
      {doubled + R"("40": {}}})", "so many JSON schemas in each other"},
      {many + "}}", "more than 256 parameters"}};
  for (const auto &[parameters, says] : cases)
    EXPECT_NE(refusal(parameters).find(says), std::string::npos)
        << parameters << ": " << refusal(parameters);
}

TEST(Tools, CallsAreReadFromPieces) {
  const ToolChoice hermes = styled(ToolStyle::Hermes),
                   mistral = styled(ToolStyle::Mistral),
                   llama = styled(ToolStyle::Llama),
                   named = styled(ToolStyle::MistralNamed),
                   granite = styled(ToolStyle::Granite),
                   cohere = styled(ToolStyle::Cohere),
                   deepSeek = styled(ToolStyle::DeepSeek),
                   glm = styled(ToolStyle::Glm),
                   harmony = styled(ToolStyle::Harmony),
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
      {styled(ToolStyle::Mistral, "[TOOL_CALLS]"),
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
      {granite,
       "<|tool_call|>[{\"name\": \"f\", \"arguments\": {}}]",
       "",
       {{"f", "{}"}}},
      {named,
       "so [TOOL_CALLS]f[ARGS]{\"a\": "
       "\"[ARGS]\"}[TOOL_CALLS]g[CALL_ID]x1[ARGS] "
       "{}",
       "so",
       {{"f", "{\"a\":\"[ARGS]\"}"}, {"g", "{}"}}},
      {named, "[TOOL_CALLS]h[ARGS]{}", "[TOOL_CALLS]h[ARGS]{}", {}},
      {named, "[TOOL_CALLS]f[ARGS]no", "[TOOL_CALLS]f[ARGS]no", {}},
      {named, "[TOOL_CALLS]f[ARGS]{} and", "and", {{"f", "{}"}}},
      {named, "a [TOOL_CALLS]f", "a [TOOL_CALLS]f", {}},
      {styled(ToolStyle::MistralNamed, "[TOOL_CALLS]g[ARGS]"),
       "{\"b\": 2}",
       "",
       {{"g", "{\"b\":2}"}}},
      {cohere,
       "so\n<|START_ACTION|>[\n    {\"tool_call_id\": \"0\", \"tool_name\": "
       "\"f\", \"parameters\": {\"a\": 1}},\n    {\"tool_call_id\": \"1\", "
       "\"tool_name\": \"g\", \"parameters\": {}}\n]<|END_ACTION|>",
       "so",
       {{"f", "{\"a\":1}"}, {"g", "{}"}}},
      {cohere,
       "<|START_ACTION|>[{\"name\": \"f\"}]<|END_ACTION|>",
       "<|START_ACTION|>[{\"name\": \"f\"}]<|END_ACTION|>",
       {}},
      {deepSeek,
       "so\n\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>"
       "f\n"
       "```json\n{\"a\": \"```\"}\n```<｜tool▁call▁end｜>\n"
       "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
       "so",
       {{"f", "{\"a\":\"```\"}"}, {"g", "{}"}}},
      {deepSeek,
       "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>{\"a\": 1}"
       "<｜tool▁call▁end｜><｜tool▁call▁begin｜>g<｜tool▁sep｜>{}"
       "<｜tool▁call▁end｜><｜tool▁calls▁end｜>bye",
       "bye",
       {{"f", "{\"a\":1}"}, {"g", "{}"}}},
      {styled(ToolStyle::DeepSeekPlain,
              "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"),
       "f<｜tool▁sep｜>{}",
       "",
       {{"f", "{}"}}},
      {deepSeek,
       "<｜tool▁call▁begin｜>h<｜tool▁sep｜>{}<｜tool▁call▁end｜> x",
       "<｜tool▁call▁begin｜>h<｜tool▁sep｜>{}<｜tool▁call▁end｜> x",
       {}},
      {deepSeek, "a <｜tool▁calls", "a <｜tool▁calls", {}},
      {glm, "\nf is a text\n", "\nf is a text\n", {}},
      {glm,
       "f\n{\"a\": 1}\n<|assistant|>g\n{}",
       "",
       {{"f", "{\"a\":1}"}, {"g", "{}"}}},
      {glm, "\nso<|assistant|>g\n{}", "\nso", {{"g", "{}"}}},
      {glm, "f\n[1] then", "f\n[1] then", {}},
      {glm, "f", "f", {}},
      {harmony,
       "<|channel|>analysis<|message|>hm <|<|end|><|start|>assistant<|channel|>"
       "final<|message|>yes<|return|>",
       "yes",
       {},
       "hm <|"},
      {harmony,
       "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>"
       "commentary<|message|>so <|end|><|start|>assistant<|channel|>commentary "
       "to=functions.f <|constrain|>json<|message|>{\"a\": 1}<|call|>",
       "so ",
       {{"f", "{\"a\":1}"}},
       "hm"},
      {harmony,
       " to=functions.g<|channel|>commentary json<|message|>{}",
       "",
       {{"g", "{}"}}},
      {harmony,
       "<|channel|>commentary to=functions.h<|message|>{}",
       "<|channel|>commentary to=functions.h<|message|>{}",
       {}},
      {harmony,
       "<|channel|>commentary to=functions.f<|message|>no",
       "<|channel|>commentary to=functions.f<|message|>no",
       {}},
      {styled(ToolStyle::Harmony, "<|channel|>final<|message|>"),
       "{\"a\": 1}",
       "{\"a\": 1}",
       {}},
      {harmony, "to be or not", "to be or not", {}},
      {harmony, "to=", "to=", {}},
      {none,
       "<tool_call>{\"name\": \"f\"}</tool_call>",
       "<tool_call>{\"name\": \"f\"}</tool_call>",
       {}}};
  for (const ToolCase &one : cases)
    expectRead(one);
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
  EXPECT_EQ(toolStyleOf("{% if tools %}<tool_call><function=f><parameter=a>"),
            ToolStyle::Coder);
  EXPECT_EQ(toolStyleOf("{% if tools %}[TOOL_CALLS]"), ToolStyle::Mistral);
  EXPECT_EQ(toolStyleOf("{% if tools %}{\"parameters\""), ToolStyle::Llama);
  EXPECT_EQ(toolStyleOf("{% if tools %}<|tool_call|>"), ToolStyle::Granite);
  EXPECT_EQ(toolStyleOf("{% if tools %}[TOOL_CALLS][ARGS]"),
            ToolStyle::MistralNamed);
  EXPECT_EQ(toolStyleOf("{% if tools %}<|END_ACTION|>"), ToolStyle::Cohere);
  EXPECT_EQ(toolStyleOf("{% if tools %}<|observation|>"), ToolStyle::Glm);
  EXPECT_EQ(toolStyleOf("<｜tool▁sep｜>"), ToolStyle::DeepSeekPlain);
  EXPECT_EQ(toolStyleOf("<｜tool▁sep｜>\n```json"), ToolStyle::DeepSeek);
  EXPECT_EQ(toolStyleOf("<|channel|>final<|message|>"), ToolStyle::Harmony);
}

// The reader takes for a call what a grammar of calls lets through.
TEST(Tools, GrammarsFitReaders) {
  auto tools = nlohmann::ordered_json::parse(
      R"([{"function": {"name": "f", "parameters": {"enum": [{}]}}},
          {"function": {"name": "g", "parameters": {"enum": [{}]}}}])");
  const std::string deepSeek = "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>",
                    channel = "<|channel|>commentary to=functions.";
  struct Case {
    ToolStyle style;
    std::string begun, name, said;
  };
  const Case cases[] = {
      {ToolStyle::Hermes, "<tool_call>", "",
       "\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"},
      {ToolStyle::Granite, "", "",
       "<|tool_call|>[{\"name\": \"g\", \"arguments\": {}}]"},
      {ToolStyle::MistralNamed, "[TOOL_CALLS]", "", "f[ARGS]{}"},
      {ToolStyle::MistralNamed, "[TOOL_CALLS]g[ARGS]", "g", "{}"},
      {ToolStyle::Cohere, "<|START_ACTION|>", "",
       "[{\"tool_name\": \"f\", \"parameters\": {}}]<|END_ACTION|>"},
      {ToolStyle::DeepSeek, deepSeek, "",
       "function<｜tool▁sep｜>f\n```json\n{}\n```<｜tool▁call▁end｜>"
       "<｜tool▁calls▁end｜>"},
      {ToolStyle::DeepSeekPlain, deepSeek, "",
       "g<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
      {ToolStyle::Glm, "", "", "f\n{}"},
      {ToolStyle::Harmony, channel, "", "g <|constrain|>json<|message|>{}"},
      {ToolStyle::Harmony, channel + "f <|constrain|>json<|message|>", "f",
       "{}"}};
  const Model model = readModel("", "tiny");
  const Tokenizer tokenizer(model);
  const SortedVocabulary vocabulary(tokenizer,
                                    static_cast<int64_t>(tokenizer.size()));
  for (const Case &one : cases) {
    ToolChoice choice = styled(one.style, one.begun.c_str());
    choice.name = one.name;
    choice.isRequired = true;
    if (!one.begun.empty())
      EXPECT_EQ(beginningOfCall(choice), one.begun) << one.said;
    Matcher matcher(
        std::make_shared<const Grammar>(grammarOfCalls(tools, choice)),
        vocabulary);
    EXPECT_TRUE(matcher.take(one.said) && matcher.mayEnd()) << one.said;
    CallReader reader(choice);
    CallReader::Part part = reader.take(one.said, true);
    EXPECT_EQ(part.calls.size(), 1u) << one.said;
    EXPECT_EQ(part.text, "") << one.said;
  }
}

} // namespace
