// Package console drives the web console in a real browser, Debian's chromium, against a real server with
// real jobs. The flows are in web/flows/flows.mjs; scripts/console/test.sh installs what they need, and
// says where by COX_CONSOLE, without which the test is skipped.
package console
