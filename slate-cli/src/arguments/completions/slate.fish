# Completions of slate for fish.
complete -c slate -f -a '(slate complete (commandline -cp | string collect) 2>/dev/null)'
