"""An alert as each provider takes it. What it says is text there: it sets no type, mentions nobody, links nowhere."""
