// Package source is the seam between a load and where its rows come from. Source is the contract: files implement it (package
// reader), tests another (sourcetest), and nothing above the seam asks which. Records come out, typed as the source has them.
package source
