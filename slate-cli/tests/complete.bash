# Prints what bash offers at the end of each command line. `slate.bash` has the completions.
source slate.bash
for line in 'slate redb:b' 'slate redb:b.slate co' 'slate redb:b.slate find u' 'slate redb:b.slate distinct users n' \
    'slate redb:b.slate import com' 'slate redb:b.slate find users --fo' 'slate completions '; do
    COMP_LINE=$line COMP_POINT=${#line} COMP_WORDS=(slate) COMP_CWORD=0
    _slate
    printf '%s:' "$line"
    printf ' [%s]' "${COMPREPLY[@]}"
    echo
done
