#include "test/unit/runtime/PackageBuilder.h"

#include "runtime/core/Text.h"
#include "runtime/io/StrictJson.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace ds;
using namespace ds::test;
using nlohmann::json;

namespace {

std::string refusal(const std::string &text) {
  return errorOf([&] { parseStrictJson(text); });
}

TEST(StrictJson, ReadsWhatJsonIs) {
  EXPECT_EQ(parseStrictJson(R"( {"a": [1, -2, 0.5, 1e3, true, false, null], "b": {"c": ""}} )"),
            json::parse(R"({"a": [1, -2, 0.5, 1e3, true, false, null], "b": {"c": ""}})"));
  EXPECT_EQ(parseStrictJson("[]"), json::array());
  EXPECT_EQ(parseStrictJson("{}"), json::object());
  EXPECT_EQ(parseStrictJson("18446744073709551615").get<uint64_t>(), ~uint64_t(0));
  EXPECT_EQ(parseStrictJson("-9223372036854775808").get<int64_t>(), INT64_MIN);
  EXPECT_TRUE(std::signbit(parseStrictJson("-0").get<double>()));
  EXPECT_EQ(parseStrictJson("1e-400").get<double>(), 0);
  EXPECT_EQ(parseStrictJson(R"("\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00")").get<std::string>(),
            "\"\\/\b\f\n\r\t\xc3\xa4\xf0\x9f\x98\x80");
}

TEST(StrictJson, SaysLineAndColumn) {
  EXPECT_EQ(refusal(""), "1:1: expected a value, found the end");
  EXPECT_EQ(refusal("{\n  \"a\": 1,\n  \"a\": 2}"), "3:3: name 'a' occurs twice");
  EXPECT_EQ(refusal("[1 2]"), "1:4: expected ',' or ']', found '2'");
  EXPECT_EQ(refusal("{\"a\" 1}"), "1:6: expected ':', found '1'");
  EXPECT_EQ(refusal("{\"a\": 1,}"), "1:9: expected a name in quotes, found '}'");
  EXPECT_EQ(refusal("[1,]"), "1:4: expected a value, found ']'");
  EXPECT_EQ(refusal("{} x"), "1:4: expected the end, found 'x'");
  EXPECT_EQ(refusal("\"abc"), "1:1: string without end");
  EXPECT_EQ(refusal("\"a\tb\""), "1:3: expected \\u0009 for the control character, found it as it is");
  EXPECT_EQ(refusal("\"\xff\""), "1:2: invalid UTF-8");
  EXPECT_EQ(refusal("tru"), "1:1: expected a value, found 't'");
  EXPECT_EQ(refusal("\xff"), "1:1: expected a value, found byte 0xff");
}

TEST(StrictJson, RefusesWhatReadersUnderstandDifferently) {
  EXPECT_EQ(refusal("01"), "1:1: number with a leading zero");
  EXPECT_EQ(refusal("1."), "1:3: expected a digit, found the end");
  EXPECT_EQ(refusal("1e"), "1:3: expected a digit, found the end");
  EXPECT_EQ(refusal("1e999"), "1:1: number does not fit a double");
  EXPECT_EQ(refusal("18446744073709551616"), "1:1: integer does not fit 64 bits");
  EXPECT_EQ(refusal("NaN"), "1:1: expected a value, found 'N'");
  EXPECT_EQ(refusal("-"), "1:1: expected a value, found the end");
  EXPECT_EQ(refusal(R"("\ud800")"), "1:2: half of a surrogate pair");
  EXPECT_EQ(refusal(R"("\udc00")"), "1:2: half of a surrogate pair");
  EXPECT_EQ(refusal(R"("\u12g4")"), "1:2: expected four hex digits after \\u");
  EXPECT_EQ(refusal(R"("\u-123")"), "1:2: expected four hex digits after \\u");
  EXPECT_EQ(refusal(R"("\x")"), "1:2: unknown escape");
  EXPECT_EQ(refusal(R"({"\u0061": 1, "a": 2})"), "1:15: name 'a' occurs twice");
}

TEST(StrictJson, RefusesDeepNesting) {
  EXPECT_EQ(refusal(std::string(64, '[') + std::string(64, ']')), "");
  EXPECT_EQ(refusal(std::string(65, '[') + std::string(65, ']')), "1:65: nested deeper than 64");
  EXPECT_EQ(refusal(std::string(1000000, '[')), "1:65: nested deeper than 64");
}

TEST(StrictJson, KnowsUtf8) {
  for (const char *text : {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(isUtf8(text)) << text;
  for (const char *text : {"\x80", "\xc0\x80", "\xc1\xbf", "\xc2", "\xe0\x9f\xbf", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\xe2\x82", "\xf0\x9f\x98"})
    EXPECT_FALSE(isUtf8(text));
}

TEST(StrictJson, QuotesNamesInOneLine) {
  EXPECT_EQ(inQuotes("\xc3\xa4 'b'"), "'\xc3\xa4 'b''");
  EXPECT_EQ(inQuotes("a\n\x1b[0m\xff"), "'a\\x0a\\x1b[0m\\xff'");
  EXPECT_EQ(inQuotes(std::string(1000, 'x')).size(), 201u + 5u);
}

TEST(StrictJson, PutsMessagesOnOneLine) {
  EXPECT_EQ(oneLine("\xc3\xa4 'b' \xe2\x82\xac \xf0\x9f\x98\x80"), "\xc3\xa4 'b' \xe2\x82\xac \xf0\x9f\x98\x80");
  EXPECT_EQ(oneLine("a\nb\r\x7f\xff"), "a\\x0ab\\x0d\\x7f\\xff");
  EXPECT_EQ(oneLine("\xc2\x85\xe2\x80\xa8\xe2\x80\xae\xe2\x81\xa6"),
            "\\xc2\\x85\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6");
  EXPECT_EQ(oneLine("\xc2\xa0\xe2\x80\xa7\xe2\x81\xaa"), "\xc2\xa0\xe2\x80\xa7\xe2\x81\xaa"); // their neighbours
  EXPECT_EQ(oneLine(std::string(1000, 'x')).size(), 1000u);
}

TEST(StrictJson, WritesOnlyWhatItReads) {
  json value = {{"a", {1, 0.1, "\xc3\xa4"}}, {"b", nullptr}};
  EXPECT_EQ(parseStrictJson(writeStrictJson(value)), value);
  EXPECT_EQ(errorOf([] { writeStrictJson({{"a", {1, std::nan("")}}}); }), "a[1]: JSON has no NaN and no infinity");
  EXPECT_EQ(errorOf([] { writeStrictJson({{"a", {{"b", "\xff"}}}}); }), "a.b: invalid UTF-8");
  EXPECT_EQ(errorOf([] { writeStrictJson({{"\xff", 1}}); }), "the value: a name in it is invalid UTF-8");
  json deep = 1;
  for (int i = 0; i < 65; ++i)
    deep = json::array({deep});
  EXPECT_NE(errorOf([&] { writeStrictJson(deep); }).find("nested deeper than 64"), std::string::npos);
}

} // namespace
