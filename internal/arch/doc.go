// Package arch is a test: it reads the imports of every package of the module and fails on any arrow that is not listed
// there. What comes in is the source tree, what goes out is a list of arrows that nobody agreed to. It knows
// nothing of what the packages do.
package arch
