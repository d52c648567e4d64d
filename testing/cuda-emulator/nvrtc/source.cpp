#include "source.h"

#include <cctype>

namespace emulated {

std::string blanked(const std::string &text) {
  std::string out = text;
  auto blank = [&](size_t from, size_t to) {
    for (size_t i = from; i < to && i < out.size(); i++)
      if (out[i] != '\n') out[i] = ' ';
  };
  for (size_t i = 0; i < text.size();) {
    size_t end;
    if (text.compare(i, 2, "//") == 0) {
      end = text.find('\n', i);
    } else if (text.compare(i, 2, "/*") == 0) {
      end = text.find("*/", i + 2);
      if (end != std::string::npos) end += 2;
    } else if (text.compare(i, 2, "R\"") == 0 && (!i || !(isalnum((unsigned char)text[i - 1]) || text[i - 1] == '_'))) {
      size_t open = text.find('(', i);
      std::string close = open == std::string::npos ? "" : ")" + text.substr(i + 2, open - i - 2) + "\"";
      end = close.empty() ? std::string::npos : text.find(close, open);
      if (end != std::string::npos) end += close.size();
    } else if (text[i] == '"' || (text[i] == '\'' && !(i && isalnum((unsigned char)text[i - 1])))) {
      for (end = i + 1; end < text.size() && text[end] != text[i] && text[end] != '\n'; end++)
        if (text[end] == '\\') end++;
      end++;
      // `extern "C"` stays visible.
      if (text.compare(i, 3, "\"C\"") == 0) {
        i = end;
        continue;
      }
    } else {
      i++;
      continue;
    }
    if (end == std::string::npos || end > text.size()) end = text.size();
    blank(i, end);
    i = end;
  }
  return out;
}

// A cursor over blanked text that reads tokens.
struct Cursor {
  const std::string &text;
  size_t at;
  void space() {
    while (at < text.size() && (isspace((unsigned char)text[at]) || text[at] == '\\')) at++;
  }
  bool take(const char *token) {
    space();
    size_t n = std::char_traits<char>::length(token);
    if (text.compare(at, n, token)) return false;
    bool word = isalnum((unsigned char)token[n - 1]) || token[n - 1] == '_';
    char next = at + n < text.size() ? text[at + n] : ' ';
    if (word && (isalnum((unsigned char)next) || next == '_')) return false;
    at += n;
    return true;
  }
  std::string name() {
    space();
    size_t from = at;
    while (at < text.size() && (isalnum((unsigned char)text[at]) || text[at] == '_')) at++;
    return text.substr(from, at - from);
  }
  bool parentheses() {
    if (!take("(")) return false;
    int depth = 1;
    for (; at < text.size() && depth; at++) depth += (text[at] == '(') - (text[at] == ')');
    return true;
  }
};

static bool word_at(const std::string &text, size_t at, size_t length) {
  auto part = [&](size_t i) { return isalnum((unsigned char)text[i]) || text[i] == '_'; };
  return (!at || !part(at - 1)) && (at + length >= text.size() || !part(at + length));
}

// Whether `at` lies in an `extern "C" { ... }`.
static bool in_c_block(const std::string &blank, size_t at) {
  for (size_t i = blank.find("extern"); i < at; i = blank.find("extern", i + 1)) {
    Cursor cursor{blank, i + 6};
    if (!cursor.take("\"C\"") || !cursor.take("{")) continue;
    int depth = 1;
    size_t j = cursor.at;
    for (; j < at && depth; j++) depth += (blank[j] == '{') - (blank[j] == '}');
    if (depth) return true;
  }
  return false;
}

std::vector<std::string> kernels_of(const std::string &, const std::string &blank) {
  std::vector<std::string> names;
  static const std::string word = "__global__";
  for (size_t i = blank.find(word); i != std::string::npos; i = blank.find(word, i + 1)) {
    if (!word_at(blank, i, word.size())) continue;
    size_t from = blank.find_last_of(";}{", i);
    size_t before = blank.rfind("\"C\"", i);
    bool c = before != std::string::npos && (from == std::string::npos || before > from);
    if (!c && !in_c_block(blank, i)) continue;
    // A macro that defines kernels is none itself.
    size_t line = blank.rfind('\n', i);
    while (line != std::string::npos && line && blank[line - 1] == '\\') line = blank.rfind('\n', line - 1);
    Cursor start{blank, line == std::string::npos ? 0 : line};
    start.space();
    if (start.at < i && blank[start.at] == '#') continue;
    Cursor cursor{blank, i + word.size()};
    while (cursor.take("static") || cursor.take("inline") || (cursor.take("__launch_bounds__") && cursor.parentheses())) {
    }
    if (!cursor.take("void")) continue;
    if (cursor.take("__launch_bounds__")) cursor.parentheses();
    std::string name = cursor.name();
    if (name.empty() || !cursor.take("(")) continue;
    bool known = false;
    for (auto &other : names) known |= other == name;
    if (!known) names.push_back(name);
  }
  return names;
}

std::string rewritten(const std::string &text, const std::string &blank) {
  std::string out;
  size_t copied = 0;
  static const std::string word = "__shared__";
  for (size_t i = blank.find(word); i != std::string::npos; i = blank.find(word, i + 1)) {
    if (!word_at(blank, i, word.size())) continue;
    // What stands before it in the declaration.
    size_t from = i;
    bool is_extern = false;
    for (;;) {
      size_t end = from;
      while (end && isspace((unsigned char)blank[end - 1])) end--;
      auto before = [&](const char *token) {
        std::string t = token;
        return end >= t.size() && !blank.compare(end - t.size(), t.size(), t) && word_at(blank, end - t.size(), t.size());
      };
      if (before("extern")) is_extern = true, from = end - 6;
      else if (before("static")) from = end - 6;
      else if (before("volatile")) break;
      else break;
    }
    if (!is_extern) {
      if (from != i) { // `static __shared__`
        out += text.substr(copied, from - copied);
        copied = i;
      }
      Cursor behind{blank, i + word.size()};
      if (behind.take("alignas") && behind.parentheses()) { // g++ has no place for it; shared variables are aligned anyway
        out += text.substr(copied, i + word.size() - copied);
        copied = behind.at;
      }
      continue;
    }
    // extern __shared__ [alignment] TYPE NAME [] ;
    Cursor cursor{blank, i + word.size()};
    while ((cursor.take("alignas") || cursor.take("__align__")) && cursor.parentheses()) {
    }
    cursor.space();
    size_t type = cursor.at;
    size_t bracket = blank.find('[', type), semicolon = blank.find(';', type);
    if (bracket == std::string::npos || semicolon == std::string::npos || bracket > semicolon) continue;
    size_t name_end = bracket;
    while (name_end > type && isspace((unsigned char)blank[name_end - 1])) name_end--;
    size_t name = name_end;
    while (name > type && (isalnum((unsigned char)blank[name - 1]) || blank[name - 1] == '_')) name--;
    std::string type_text = text.substr(type, name - type);
    // An alignment may also stand behind the type.
    size_t align = type_text.find("__align__");
    if (align == std::string::npos) align = type_text.find("alignas");
    if (align != std::string::npos) {
      Cursor inner{type_text, align};
      inner.name();
      inner.parentheses();
      type_text.erase(align, inner.at - align);
    }
    out += text.substr(copied, from - copied);
    out += type_text + "*" + text.substr(name, name_end - name) + " = (" + type_text + "*)um_emulated_shared()";
    copied = semicolon;
  }
  return out + text.substr(copied);
}

} // namespace emulated
