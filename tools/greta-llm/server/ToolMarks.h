// ToolMarks.h: what models write around calls and their parts (Tools.h).
#ifndef GRETA_LLM_TOOL_MARKS_H
#define GRETA_LLM_TOOL_MARKS_H

namespace greta::llm {

constexpr const char *callBegin = "<tool_call>", *callEnd = "</tool_call>",
                     *functionBegin = "<function=",
                     *functionEnd = "</function>",
                     *parameterBegin = "<parameter=",
                     *parameterEnd = "</parameter>",
                     *mistralMark = "[TOOL_CALLS]",
                     *mistralNumber = "[CALL_ID]", *mistralValues = "[ARGS]",
                     *graniteMark = "<|tool_call|>",
                     *callsBeginOfCohere = "<|START_ACTION|>",
                     *callsEndOfCohere = "<|END_ACTION|>",
                     *pythonMark = "<|python_tag|>", *glmMark = "<|assistant|>",
                     *callsBeginOfDeepSeek = "<｜tool▁calls▁begin｜>",
                     *callBeginOfDeepSeek = "<｜tool▁call▁begin｜>",
                     *separatorOfDeepSeek = "<｜tool▁sep｜>",
                     *callEndOfDeepSeek = "<｜tool▁call▁end｜>",
                     *callsEndOfDeepSeek = "<｜tool▁calls▁end｜>",
                     *headOfFunctions = "<|channel|>commentary to=functions.",
                     *headEndOfFunctions = " <|constrain|>json<|message|>";

} // namespace greta::llm
#endif
