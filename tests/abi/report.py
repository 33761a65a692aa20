# SPDX-License-Identifier: Apache-2.0
"""Counts what the ABI checks found, prints failures as they come, and the last line that every test
of the project ends with."""

SHOWN = 40


class Report:
    def __init__(self):
        self.passed = 0
        self.failed = 0
        self.skipped = 0

    def good(self, count=1):
        self.passed += count

    def bad(self, text):
        self.failed += 1
        print("FAILED: " + text)

    def check(self, condition, text):
        if condition:
            self.good()
        else:
            self.bad(text)

    def skip(self, text, fail=False):
        if fail:
            self.bad("%s (a skip elsewhere, a failure in CI)" % text)
        else:
            self.skipped += 1
            print("skipped: " + text)

    def same(self, what, expected, found, allow=lambda name: False):
        """Compares two dictionaries, entry by entry; allow() names what may be found in excess."""
        wrong = []
        for name in sorted(set(expected) | set(found)):
            if name not in found:
                wrong.append("%s: missing (expected %s)" % (name, expected[name]))
            elif name not in expected:
                if not allow(name):
                    wrong.append("%s: found %s, expected nothing of that name" % (name, found[name]))
            elif expected[name] != found[name]:
                wrong.append("%s: found %s, expected %s" % (name, found[name], expected[name]))
            else:
                self.good()
        for text in wrong[:SHOWN]:
            self.bad("%s: %s" % (what, text))
        if len(wrong) > SHOWN:
            self.failed += len(wrong) - SHOWN
            print("FAILED: %s: and %d more" % (what, len(wrong) - SHOWN))

    def finish(self):
        """Prints the last line and answers the exit status."""
        tail = ", %d skipped" % self.skipped if self.skipped else ""
        print("%d passed, %d failed%s" % (self.passed, self.failed, tail), flush=True)
        return 1 if self.failed or not (self.passed or self.skipped) else 0
