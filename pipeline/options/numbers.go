package options

import "example.com/tsimport/pipeline"

// marks are what is said of key columns that the service numbers.
func (n *Numbered) marks() pipeline.Marks {
	return pipeline.Marks{ReturnedKeys: n.ReturnedKeys, Column: n.MarkColumn, LookFirst: n.LookFirst, AtLeastOnce: n.AtLeastOnce}
}
