// Package source is the seam between a load and its rows. Source is the contract. Files implement it (package reader),
// and so do the rows of the library (the module's root) and sources for tests (package sourcetest); nothing above the
// seam knows which one it has.
package source
