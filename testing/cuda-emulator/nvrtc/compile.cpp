#include "compile.h"
#include "cache.h"
#include "files.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

namespace emulated {

static std::string folder_of(const std::string &path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

static std::string library_folder() {
  Dl_info here;
  dladdr((void *)&library_folder, &here);
  return folder_of(here.dli_fname);
}

// The folder with device.h: as the environment says, or beside this library.
static std::string device_folder() {
  const char *header = getenv("EMULATED_CUDA_HEADER");
  return header && *header ? folder_of(header) : library_folder() + "/device";
}

bool write_file(const std::string &path, const std::string &text) {
  FILE *file = fopen(path.c_str(), "wb");
  if (!file) return false;
  bool ok = fwrite(text.data(), 1, text.size(), file) == text.size();
  return fclose(file) == 0 && ok;
}

bool read_file(const std::string &path, std::string *text) {
  FILE *file = fopen(path.c_str(), "rb");
  if (!file) return false;
  char buffer[65536];
  text->clear();
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) text->append(buffer, n);
  fclose(file);
  return true;
}

// A folder of its own for each compilation, removed with what was put into it.
struct Folder {
  std::string path;
  std::vector<std::string> files, folders;
  Folder() {
    const char *base = getenv("TMPDIR");
    std::string name = std::string(base && *base ? base : "/tmp") + "/emulated-cuda-XXXXXX";
    if (mkdtemp(&name[0])) path = name;
  }
  ~Folder() {
    for (auto &file : files) unlink(file.c_str());
    for (size_t i = folders.size(); i--;) rmdir(folders[i].c_str());
    if (!path.empty()) rmdir(path.c_str());
  }
  std::string file(const std::string &name) {
    for (size_t slash = name.find('/'); slash != std::string::npos; slash = name.find('/', slash + 1)) {
      std::string folder = path + "/" + name.substr(0, slash);
      if (!mkdir(folder.c_str(), 0700)) folders.push_back(folder);
    }
    files.push_back(path + "/" + name);
    return files.back();
  }
};

// The exit status of a command; -1 if it did not start or did not end by itself, with the reason.
static int run(const std::vector<std::string> &command, const std::string &log, std::string *reason) {
  std::vector<char *> arguments;
  for (auto &word : command) arguments.push_back(const_cast<char *>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  pid_t child;
  int failed = posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed) {
    *reason = "cannot run " + command[0] + ": " + strerror(failed) + "\n";
    return -1;
  }
  int status;
  while (waitpid(child, &status, 0) < 0) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  *reason = command[0] + " was ended by signal " + std::to_string(WTERMSIG(status)) + "\n";
  return -1;
}

// The compiler, assembler and linker behind g++, called by themselves: its driver takes as long as they do.
struct Tools {
  std::string compiler, assembler, linker;
  static const Tools &found() {
    static const Tools &tools = *new Tools{named("cc1plus"), named("as"), named("ld")};
    return tools;
  }
  static std::string named(const char *name) {
    const char *driver = getenv("EMULATED_CUDA_COMPILER");
    std::string command = std::string(driver && *driver ? driver : "g++") + " -print-prog-name=" + name, path;
    if (FILE *answer = popen(command.c_str(), "r")) {
      for (int c; (c = getc(answer)) != EOF && c != '\n';) path += (char)c;
      pclose(answer);
    }
    return path.empty() ? name : path;
  }
};

static bool digits(const std::string &line, size_t from, size_t to) {
  for (size_t i = from; i < to; i++)
    if (line[i] < '0' || line[i] > '9') return false;
  return from < to;
}

// `name:12:5: error: text` as `name(12): error: text`.
static std::string as_nvcc(const std::string &log, const std::string &name) {
  std::string out;
  int errors = 0;
  for (size_t at = 0; at < log.size();) {
    size_t end = log.find('\n', at);
    if (end == std::string::npos) end = log.size();
    std::string line = log.substr(at, end - at);
    at = end + 1;
    size_t error = line.find(": error: ");
    if (error == std::string::npos) error = line.find(": fatal error: ");
    errors += error != std::string::npos;
    size_t before = error == std::string::npos ? line.find(": note: ") : error;
    if (before != std::string::npos && before) {
      size_t column = line.rfind(':', before - 1);
      size_t number = column == std::string::npos || !column ? std::string::npos : line.rfind(':', column - 1);
      if (number != std::string::npos && digits(line, column + 1, before) && digits(line, number + 1, column))
        line = line.substr(0, number) + "(" + line.substr(number + 1, column - number - 1) + ")" + line.substr(before);
    }
    out += line + "\n";
  }
  if (errors) {
    out += std::to_string(errors) + (errors == 1 ? " error" : " errors") + " detected in the compilation of \"" + name + "\".\n";
  }
  return out;
}

// All that the result hangs on. Programs with folders of headers are not kept: those may change.
static std::string cache_for(const Compilation &what, const std::string &device) {
  struct stat header;
  if (stat((device + "/device.h.gch").c_str(), &header)) return "";
  std::string key = std::to_string(header.st_mtim.tv_sec) + " " + std::to_string(header.st_mtim.tv_nsec) + " ";
  auto add = [&](const std::string &part) { key += std::to_string(part.size()) + ":" + part; };
  for (auto *part : {&what.name, &what.text, &what.entries}) add(*part);
  for (auto &header : what.headers) add(header.name), add(header.text);
  for (auto &option : what.options) {
    if (!option.compare(0, 2, "-I")) return "";
    add(option);
  }
  return cache_file(library_folder(), key);
}

bool compile(const Compilation &what, std::string *image, std::string *log) {
  std::string device = device_folder(), cached = cache_for(what, device);
  if (cache_read(cached, image)) return true;
  Folder folder;
  std::string source = folder.file("program.cc"), assembly = folder.file("program.s"), messages = folder.file("log");
  std::string object = folder.file("program.o"), library = folder.file("program.so");
  std::string name = "\"";
  for (char c : what.name) name += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  name += "\"\n";
  bool ok = write_file(source, "#line 1 " + name + what.text + "\n#line 1 \"name expressions\"\n" + what.entries +
                                   "extern \"C\" { extern const char um_emulated_program[] = " + name + "; }\n");
  for (auto &header : what.headers) ok = ok && write_file(folder.file("include/" + header.name), header.text);
  if (!ok) {
    *log = "cannot write into the temporary folder\n";
    return false;
  }
  const Tools &tools = Tools::found();
  std::vector<std::string> command = {tools.compiler, "-quiet", "-D_GNU_SOURCE",
#define FLAG(flag) flag,
#include "flags.inc"
#undef FLAG
                                      "-fdiagnostics-color=never", "-fno-diagnostics-show-caret", "-include",
                                      device + "/device.h", "-I" + folder.path + "/include", "-I" + device + "/include"};
  command.insert(command.end(), what.options.begin(), what.options.end());
  for (auto &last : {source, std::string("-o"), assembly}) command.push_back(last);
  std::string reason;
  int status = run(command, messages, &reason);
  // What is not defined here, such as the functions of libm, is found in the process.
  if (!status) status = run({tools.assembler, assembly, "-o", object}, messages, &reason);
  if (!status) status = run({tools.linker, "-shared", "-Bsymbolic", object, "-o", library}, messages, &reason);
  std::string words;
  read_file(messages, &words);
  *log = as_nvcc(words, what.name) + reason;
  if (status || !read_file(library, image)) return false;
  cache_write(cached, *image);
  return true;
}

} // namespace emulated
