// CommandLine.cpp: see CommandLine.h.
#include "CommandLine.h"
#include "OneLine.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

// How many letters have to be added, removed, replaced or exchanged with their
// neighbour to turn one word into the other.
size_t distance(const std::string &A, const std::string &B) {
  // At I, J: of the first I letters of A and the first J of B.
  std::vector<std::vector<size_t>> At(A.size() + 1,
                                      std::vector<size_t>(B.size() + 1));
  for (size_t I = 0; I <= A.size(); ++I)
    for (size_t J = 0; J <= B.size(); ++J) {
      size_t &Least = At[I][J] = std::max(I, J);
      if (!I || !J)
        continue;
      Least = std::min({At[I - 1][J - 1] + (A[I - 1] != B[J - 1]),
                        At[I - 1][J] + 1, At[I][J - 1] + 1});
      if (I > 1 && J > 1 && A[I - 1] == B[J - 2] && A[I - 2] == B[J - 1])
        Least = std::min(Least, At[I - 2][J - 2] + 1);
    }
  return At[A.size()][B.size()];
}

// "; did you mean 'X'?" with the name nearest to a word, behind its prefix, or
// "" if none is near. A word of three letters or more is near to the names that
// it begins.
std::string didYouMean(const std::string &Word,
                       const std::vector<std::string> &Names,
                       const std::string &Prefix = "") {
  const std::string *Best = nullptr;
  size_t Least = std::max<size_t>(1, Word.size() / 3) + 1;
  for (const std::string &Name : Names) {
    bool Begins = Word.size() > 2 && Name.compare(0, Word.size(), Word) == 0;
    size_t D = Begins ? 1 : distance(Word, Name);
    if (D < Least) {
      Least = D;
      Best = &Name;
    }
  }
  return Best ? "; did you mean '" + Prefix + *Best + "'?" : "";
}

// Every long option of a command and of its groups, without the dashes.
void addOptions(CLI::App &Command, std::vector<std::string> &Names) {
  for (const CLI::Option *Option : Command.get_options())
    for (const std::string &Name : Option->get_lnames())
      Names.push_back(Name);
  for (CLI::App *Group :
       Command.get_subcommands([](CLI::App *) { return true; }))
    if (Group->get_name().empty())
      addOptions(*Group, Names);
}

CLI::Validator finite(const std::string &What,
                      std::function<bool(double)> IsRight) {
  return CLI::Validator(
      [What, IsRight](std::string &Text) {
        char *End = nullptr;
        double Value = strtod(Text.c_str(), &End);
        bool IsNumber = End != Text.c_str() && !*End && std::isfinite(Value);
        return IsNumber && IsRight(Value)
                   ? ""
                   : "'" + Text + "' is no number " + What;
      },
      "number " + What);
}

std::string shortest(double Value) {
  char Text[32];
  snprintf(Text, sizeof(Text), "%g", Value);
  return Text;
}

// Lists as users write them: "[1,2]" is "1,2", and nothing is said of "[]".
void tidyDefaults(CLI::App &Command) {
  for (CLI::Option *Option :
       Command.get_options([](CLI::Option *) { return true; })) {
    std::string Text = Option->get_default_str();
    if (Text.size() > 1 && Text.front() == '[' && Text.back() == ']')
      Option->default_str(Text.substr(1, Text.size() - 2));
  }
  for (CLI::App *Part :
       Command.get_subcommands([](CLI::App *) { return true; }))
    tidyDefaults(*Part);
}

// "--name=" without a value, for which CLI11 would take the next argument, or
// "".
std::string emptyValue(CLI::App &App, int Count, char **Arguments) {
  std::vector<std::string> Names;
  addOptions(App, Names);
  for (CLI::App *Verb : App.get_subcommands([](CLI::App *) { return true; }))
    addOptions(*Verb, Names);
  for (int I = 1; I < Count && strcmp(Arguments[I], "--") != 0; ++I) {
    std::string Word = Arguments[I];
    for (const std::string &Name : Names)
      if (Word == "--" + Name + "=")
        return Word;
  }
  return "";
}

// Explains a mistake in the command line. An unknown word is named even if
// something else is missing: it is probably the missing one, misspelt.
std::string explain(CLI::App &App, const CLI::ParseError &Mistake) {
  std::vector<std::string> Unknown = App.remaining(true);
  if (Unknown.empty())
    return Mistake.what();
  const std::string &Word = Unknown.front();
  std::vector<std::string> Verbs, Options;
  for (CLI::App *Verb : App.get_subcommands([](CLI::App *) { return true; }))
    if (!Verb->get_name().empty() && !Verb->get_group().empty()) // not hidden
      Verbs.push_back(Verb->get_name());
  std::vector<CLI::App *> Chosen = App.get_subcommands();
  Chosen.erase(
      std::remove_if(Chosen.begin(), Chosen.end(),
                     [](CLI::App *Verb) { return Verb->get_name().empty(); }),
      Chosen.end());
  CLI::App &Command = Chosen.empty() ? App : *Chosen.front();
  std::string Help = App.get_name() +
                     (Chosen.empty() ? "" : " " + Command.get_name()) +
                     " --help lists all options";
  if (Word.size() > 1 && Word[0] == '-') {
    addOptions(Command, Options);
    size_t Begin = std::min(Word.find_first_not_of('-'), Word.size());
    std::string Name = Word.substr(Begin, Word.find('=') - Begin);
    std::string Meant = didYouMean(Name, Options, "--");
    return "unknown option '" + Word.substr(0, Word.find('=')) + "'" +
           (Meant.empty() ? "; " + Help : Meant);
  }
  if (Verbs.empty() || !Chosen.empty())
    return "unexpected argument '" + Word + "'; " + Help;
  std::string All;
  for (const std::string &Verb : Verbs)
    All += (All.empty() ? "" : ", ") + Verb;
  std::string Meant = didYouMean(Word, Verbs);
  return "unknown command '" + Word + "'" +
         (Meant.empty() ? "; the commands are "
                        : Meant + " The commands are ") +
         All;
}

} // namespace

CLI::Validator numbers(double Least, double Most) {
  return finite("from " + shortest(Least) + " to " + shortest(Most),
                [=](double Value) { return Value >= Least && Value <= Most; });
}

CLI::Validator numbersFrom0() {
  return finite("from 0 on", [](double Value) { return Value >= 0; });
}

CLI::Validator positiveNumbers() {
  return finite("beyond 0", [](double Value) { return Value > 0; });
}

CommandLine::CommandLine(const std::string &Description,
                         const std::string &Name)
    : CLI::App(Description, Name) {
  set_version_flag("--version", Name + " " GRETA_VERSION);
  option_defaults()->always_capture_default();
  get_formatter()->column_width(36);
}

std::optional<int> CommandLine::parseArguments(int Count, char **Arguments) {
  tidyDefaults(*this);
  if (std::string Word = emptyValue(*this, Count, Arguments); !Word.empty()) {
    fprintf(stderr, "%s: error: '%s' has no value\n", get_name().c_str(),
            onOneLine(Word).c_str());
    return 1;
  }
  try {
    parse(Count, Arguments);
    return std::nullopt;
  } catch (const CLI::Success &End) {
    return exit(End);
  } catch (const CLI::ParseError &Mistake) {
    fprintf(stderr, "%s: error: %s\n", get_name().c_str(),
            onOneLine(explain(*this, Mistake)).c_str());
    return 1;
  }
}
