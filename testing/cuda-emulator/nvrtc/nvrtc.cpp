// The interface of NVRTC. A "cubin" is a shared object that the emulated driver loads.
#include "compile.h"
#include "source.h"

#include <cstring>
#include <map>

typedef int nvrtcResult;
#define NVRTC_CALL extern "C" __attribute__((visibility("default"))) nvrtcResult

enum {
  NVRTC_SUCCESS = 0,
  NVRTC_ERROR_INVALID_INPUT = 3,
  NVRTC_ERROR_INVALID_PROGRAM = 4,
  NVRTC_ERROR_INVALID_OPTION = 5,
  NVRTC_ERROR_COMPILATION = 6,
  NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION = 8,
  NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
  NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID = 10,
};

using namespace emulated;

struct Program {
  std::string source, name, log, image;
  std::vector<Header> headers;
  std::vector<std::string> expressions;
  std::map<std::string, std::string> lowered;
  bool compiled = false, binary = false;
};
typedef Program *nvrtcProgram;

static const char *const results[] = {
    "NVRTC_SUCCESS",
    "NVRTC_ERROR_OUT_OF_MEMORY",
    "NVRTC_ERROR_PROGRAM_CREATION_FAILURE",
    "NVRTC_ERROR_INVALID_INPUT",
    "NVRTC_ERROR_INVALID_PROGRAM",
    "NVRTC_ERROR_INVALID_OPTION",
    "NVRTC_ERROR_COMPILATION",
    "NVRTC_ERROR_BUILTIN_OPERATION_FAILURE",
    "NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION",
    "NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION",
    "NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID",
    "NVRTC_ERROR_INTERNAL_ERROR",
};

extern "C" __attribute__((visibility("default"))) const char *nvrtcGetErrorString(nvrtcResult result) {
  constexpr int count = sizeof results / sizeof *results;
  return result >= 0 && result < count ? results[result] : "NVRTC_ERROR unknown";
}

NVRTC_CALL nvrtcVersion(int *major, int *minor) {
  if (!major || !minor) return NVRTC_ERROR_INVALID_INPUT;
  *major = 13;
  *minor = 0;
  return NVRTC_SUCCESS;
}

static const int architectures[] = {75, 80, 86, 89, 90, 100};

NVRTC_CALL nvrtcGetNumSupportedArchs(int *count) {
  if (!count) return NVRTC_ERROR_INVALID_INPUT;
  *count = sizeof architectures / sizeof *architectures;
  return NVRTC_SUCCESS;
}

NVRTC_CALL nvrtcGetSupportedArchs(int *all) {
  if (!all) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(all, architectures, sizeof architectures);
  return NVRTC_SUCCESS;
}

NVRTC_CALL nvrtcCreateProgram(nvrtcProgram *program, const char *source, const char *name, int count,
                              const char *const *headers, const char *const *names) {
  if (!program || !source || count < 0 || (count && (!headers || !names))) return NVRTC_ERROR_INVALID_INPUT;
  Program *made = new Program;
  made->source = source;
  made->name = name && *name ? name : "default_program";
  for (int i = 0; i < count; i++) made->headers.push_back({names[i], headers[i]});
  *program = made;
  return NVRTC_SUCCESS;
}

NVRTC_CALL nvrtcDestroyProgram(nvrtcProgram *program) {
  if (!program || !*program) return NVRTC_ERROR_INVALID_PROGRAM;
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

NVRTC_CALL nvrtcAddNameExpression(nvrtcProgram program, const char *expression) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!expression) return NVRTC_ERROR_INVALID_INPUT;
  if (program->compiled) return NVRTC_ERROR_NO_NAME_EXPRESSIONS_AFTER_COMPILATION;
  program->expressions.push_back(expression);
  return NVRTC_SUCCESS;
}

// -I and -D go on to g++; a real architecture makes a cubin, another one only PTX; the rest has no meaning here.
static bool take_options(int count, const char *const *options, Program *program, Compilation *to) {
  for (int i = 0; i < count; i++) {
    std::string option = options[i] ? options[i] : "";
    if (option.empty() || option[0] != '-') {
      program->log = "nvrtc: error: unrecognized option " + option + " found\n";
      return false;
    }
    bool alone = option == "-I" || option == "-D" || option == "-U" || option == "-arch" || option == "-std";
    if (alone && i + 1 < count) option += (option.size() > 2 ? "=" : "") + std::string(options[++i]);
    static const std::pair<const char *, const char *> known[] = {
        {"--include-path=", "-I"},         {"--define-macro=", "-D"}, {"--undefine-macro=", "-U"},
        {"--gpu-architecture=", "-arch="}, {"--std=", "-std="},
    };
    for (auto &pair : known)
      if (!option.compare(0, strlen(pair.first), pair.first)) option = pair.second + option.substr(strlen(pair.first));
    std::string start = option.substr(0, 2);
    if (start == "-I" || start == "-D" || start == "-U") to->options.push_back(option);
    if (!option.compare(0, 6, "-arch=")) {
      program->binary = !option.compare(6, 3, "sm_");
      if (!program->binary && option.compare(6, 8, "compute_")) {
        program->log = "nvrtc: error: invalid value for --gpu-architecture (-arch)\n";
        return false;
      }
    }
  }
  return true;
}

NVRTC_CALL nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (count < 0 || (count && !options)) return NVRTC_ERROR_INVALID_INPUT;
  Compilation what;
  program->log.clear();
  program->binary = false;
  if (!take_options(count, options, program, &what)) return NVRTC_ERROR_INVALID_OPTION;
  program->compiled = true;
  what.name = program->name;
  std::string blank = blanked(program->source);
  what.text = rewritten(program->source, blank);
  for (auto &header : program->headers)
    what.headers.push_back({header.name, rewritten(header.text, blanked(header.text))});
  for (auto &kernel : kernels_of(program->source, blank))
    what.entries += "UM_EMULATED_ENTRY(" + kernel + ", " + kernel + ")\n";
  for (size_t i = 0; i < program->expressions.size(); i++) {
    std::string name = "um_expression_" + std::to_string(i), expression = program->expressions[i];
    size_t start = expression.find_first_not_of(" \t\n");
    if (start != std::string::npos && expression[start] != '&') expression = "&" + expression;
    what.entries += "UM_EMULATED_ENTRY(" + name + ", " + expression + ")\n";
    program->lowered[program->expressions[i]] = name;
  }
  return compile(what, &program->image, &program->log) ? NVRTC_SUCCESS : NVRTC_ERROR_COMPILATION;
}

NVRTC_CALL nvrtcGetLoweredName(nvrtcProgram program, const char *expression, const char **name) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!expression || !name) return NVRTC_ERROR_INVALID_INPUT;
  if (!program->compiled) return NVRTC_ERROR_NO_LOWERED_NAMES_BEFORE_COMPILATION;
  auto found = program->lowered.find(expression);
  if (found == program->lowered.end()) return NVRTC_ERROR_NAME_EXPRESSION_NOT_VALID;
  *name = found->second.c_str();
  return NVRTC_SUCCESS;
}

// Texts have a zero behind them, cubins none.
static nvrtcResult size_of(nvrtcProgram program, const std::string Program::*text, bool zero, bool there, size_t *size) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!size) return NVRTC_ERROR_INVALID_INPUT;
  *size = there ? (program->*text).size() + zero : 0;
  return NVRTC_SUCCESS;
}

static nvrtcResult copy_of(nvrtcProgram program, const std::string Program::*text, bool zero, bool there, char *to) {
  if (!program) return NVRTC_ERROR_INVALID_PROGRAM;
  if (!to || !there) return NVRTC_ERROR_INVALID_INPUT;
  memcpy(to, (program->*text).c_str(), (program->*text).size() + zero);
  return NVRTC_SUCCESS;
}

NVRTC_CALL nvrtcGetProgramLogSize(nvrtcProgram p, size_t *size) { return size_of(p, &Program::log, true, true, size); }
NVRTC_CALL nvrtcGetProgramLog(nvrtcProgram p, char *to) { return copy_of(p, &Program::log, true, true, to); }
NVRTC_CALL nvrtcGetPTXSize(nvrtcProgram p, size_t *size) {
  return size_of(p, &Program::image, true, p && !p->image.empty(), size);
}
NVRTC_CALL nvrtcGetPTX(nvrtcProgram p, char *to) { return copy_of(p, &Program::image, true, p && !p->image.empty(), to); }
NVRTC_CALL nvrtcGetCUBINSize(nvrtcProgram p, size_t *size) {
  return size_of(p, &Program::image, false, p && p->binary && !p->image.empty(), size);
}
NVRTC_CALL nvrtcGetCUBIN(nvrtcProgram p, char *to) {
  return copy_of(p, &Program::image, false, p && p->binary && !p->image.empty(), to);
}
